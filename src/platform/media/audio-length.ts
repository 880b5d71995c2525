import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import type { LengthAnswer, LengthQuestion, ReadLength } from './audio-length-worker.ts'

/** Longest time to measure a recording, including the wait for earlier ones, in milliseconds. */
const measureMaxMs = 2000
/** Maximum number of recordings that wait. The length of further ones is estimated. */
const waitingMax = 16
/** Memory limit of the measuring thread, without the recording itself. */
const threadMaxMb = 64
/** Longest length that is accepted: a day. */
const secondsMax = 86_400
/** Maximum number of bytes a second of uncompressed sound (96 kHz, stereo, 32 bits). A recording lasts at least its size divided by this. */
const bytesPerSecondMax = 768_000
/** Like `bytesPerSecondMax`, for MP3, AAC, Opus and Vorbis: 512 kbit/s. */
const compactBytesPerSecondMax = 64_000
/** Tolerance for rounding errors in sums of fractions of a second. */
const roundingSeconds = 1e-5
/** Assumed bytes a second of a recording whose length cannot be read: speech at 32 kbit/s. Decision 0170 gives the reasons. */
export const assumedBytesPerSecond = 4000

export interface MeasuredLength {
  /** Whole seconds, rounded up, at least 1. */
  readonly seconds: number
  /** False when the sound could not be counted. The length is then the larger of an estimate by size and the value in the header. */
  readonly isRead: boolean
}

/** Estimates the length of a recording by its size alone. */
export function lengthBySize(bytes: number): MeasuredLength {
  return { seconds: Math.min(secondsMax, Math.max(1, Math.ceil(bytes / assumedBytesPerSecond))), isRead: false }
}

/**
 * Returns the counted length, but not less than a recording of this size can last, and at most a day. When only a header states the length,
 * the estimate by size is a lower bound, because the sender may have invented the header.
 */
function believed({ seconds, isCompact, isCounted }: ReadLength, size: number): MeasuredLength {
  if (!isCounted) {
    const bySize = lengthBySize(size)
    return seconds <= bySize.seconds ? bySize : { seconds: Math.ceil(Math.min(seconds, secondsMax)), isRead: false }
  }
  const least = size / (isCompact ? compactBytesPerSecondMax : bytesPerSecondMax)
  const longest = Math.max(Math.min(seconds, secondsMax), least)
  return { seconds: Math.max(1, Math.ceil(longest - roundingSeconds)), isRead: true }
}

interface Waiting {
  readonly question: LengthQuestion
  readonly size: number
  readonly stopTimer: () => void
  answer(length: MeasuredLength): void
}

/**
 * Measures recordings in one thread, one after the other. The thread starts with the first recording. A recording that takes too much time
 * or memory ends the thread, and its length is estimated by its size.
 */
export class AudioLengths {
  readonly #clock: Pick<Clock, 'after'>
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | null = null
  #running: number | null = null
  #lastId = 0

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** Returns the length of a recording. Never rejects. */
  measure(recording: { readonly bytes: Buffer; readonly contentType: string; readonly filename: string }): Promise<MeasuredLength> {
    const { bytes, contentType, filename } = recording
    if (this.#waiting.size >= waitingMax) return Promise.resolve(lengthBySize(bytes.length))
    const id = ++this.#lastId
    return new Promise(resolve => {
      const stopTimer = this.#clock.after(measureMaxMs, () => {
        if (this.#running === id) this.#endThread()
        this.#settle(id, null)
      })
      this.#waiting.set(id, {
        question: { id, bytes, mimeType: contentType.startsWith('audio/') || contentType.startsWith('video/') ? contentType : '', filename },
        size: bytes.length,
        stopTimer,
        answer: resolve,
      })
      this.#next()
    })
  }

  #next(): void {
    if (this.#running !== null) return
    const [first] = this.#waiting.values()
    if (first === undefined) return
    const worker = this.#thread()
    if (worker === null) {
      this.#settle(first.question.id, null)
      return
    }
    this.#running = first.question.id
    // The message copies the bytes, because the provider gets the same recording.
    worker.postMessage(first.question)
  }

  #settle(id: number, length: ReadLength | null): void {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) {
      this.#waiting.delete(id)
      waiting.stopTimer()
      const { size } = waiting
      waiting.answer(length === null ? lengthBySize(size) : believed(length, size))
    }
    if (this.#running === id) this.#running = null
    this.#next()
  }

  #thread(): Worker | null {
    if (this.#worker !== null) return this.#worker
    const file = workerFile()
    if (file === null) return null
    const worker = new Worker(file, { stdout: false, stderr: false, resourceLimits: { maxOldGenerationSizeMb: threadMaxMb } })
    worker.unref()
    worker.on('message', ({ id, length }: LengthAnswer) => this.#settle(id, length))
    // When the thread ends, the current recording is estimated, and the next one gets a new thread.
    const lost = (): void => {
      if (this.#worker !== worker) return
      this.#worker = null
      if (this.#running !== null) this.#settle(this.#running, null)
    }
    worker.on('error', lost)
    worker.on('exit', lost)
    this.#worker = worker
    return worker
  }

  #endThread(): void {
    const worker = this.#worker
    this.#worker = null
    worker?.terminate().catch(() => undefined)
  }
}

/** Returns the path of the compiled worker, which is in dist also when this file runs as TypeScript. Null when it is not built. */
function workerFile(): string | null {
  const here = new URL(import.meta.url)
  const file = fileURLToPath(new URL(here.pathname.endsWith('.ts') ? '../../../dist/platform/media/audio-length-worker.js' : './audio-length-worker.js', here))
  return existsSync(file) ? file : null
}
