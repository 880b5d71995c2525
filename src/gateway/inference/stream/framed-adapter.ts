import type { EventFrames } from '../../providers/clouds/event-frames.ts'
import type { StreamFault } from '../../wire/chat/chat-stream.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import type { StreamAdapter } from './stream-adapter.ts'

/** Reads a stream in binary frames. Each event in a frame goes on to the adapter of an ordinary stream. */
export class FramedAdapter implements StreamAdapter {
  readonly #frames: EventFrames
  readonly #adapter: StreamAdapter

  constructor(frames: EventFrames, adapter: StreamAdapter) {
    this.#frames = frames
    this.#adapter = adapter
  }

  push(chunk: Uint8Array): Uint8Array | null {
    const events = this.#frames.push(chunk)
    return events === null ? null : this.#adapter.push(events)
  }

  end(): { readonly bytes: Uint8Array | null; readonly complete: boolean } {
    return this.#adapter.end()
  }

  fail(fault: StreamFault): Uint8Array {
    return this.#adapter.fail(fault)
  }

  usage(): TokenUsage {
    return this.#adapter.usage()
  }

  keepAlive(): Uint8Array | null {
    return this.#adapter.keepAlive()
  }

  get reported(): boolean {
    return this.#adapter.reported
  }
  get promptTold(): boolean {
    return this.#adapter.promptTold
  }
  get outputChars(): number {
    return this.#adapter.outputChars
  }
  get finished(): boolean {
    return this.#adapter.finished
  }
  get failed(): boolean {
    return this.#adapter.failed
  }
  get fault(): string | null {
    return this.#adapter.fault
  }
  get refused(): StreamFault | null {
    return this.#adapter.refused
  }
  get atBoundary(): boolean {
    return this.#adapter.atBoundary
  }
  get heldBytes(): number {
    return this.#frames.heldBytes + this.#adapter.heldBytes
  }
}
