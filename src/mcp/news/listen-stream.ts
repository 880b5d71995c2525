/** One `subscriptions/listen` stream. It sends the frames of the SDK at the speed of the reader. */
import { createMcpHandler, type McpServerFactory, type ServerEvent, type ServerEventBus } from '@modelcontextprotocol/server'
import type { Clock } from '../../platform/clock.ts'
import type { ChangeSurface, Listening } from '../surface.ts'
import { ChangeOutbox } from './change-outbox.ts'
import { type ListenBody, narrowed, paramsOf } from './listen-body.ts'

/** The listener of a stream. */
export interface Listener {
  /** The owner of the credential. Streams of the same owner are counted together. */
  readonly owner: string
  /** The organisation. All organisations share the streams that a process may have open. */
  readonly orgId: number
  /** Returns whether the credential would still be accepted. */
  isStillGood(): Promise<boolean>
  /** Aborts when the gateway cuts the credential's calls, for example after a revocation. */
  readonly cut: AbortSignal
  /** The expiry of the credential in Unix milliseconds. Null when it has none. */
  readonly endsAtMs: number | null
  /** Cuts the connection of a reader that does not read. */
  hangUp(): void
}

/** How often an idle stream sends a keep-alive and checks its credential. */
export const keepAliveMs = 15_000
/** Maximum number of keep-alives that a reader may leave unread. */
const unreadMax = 8
/** Maximum time that a reader gets to read the end of a stream. */
const lastWordsMs = 1_000
/** Longest delay that a timer accepts. */
const timerMaxMs = 2 ** 31 - 1

const keepAlive = new TextEncoder().encode(': keepalive\n\n')

export class ListenStream {
  readonly #clock: Clock
  readonly #listener: Listener
  readonly #outbox: ChangeOutbox
  readonly #handler: ReturnType<typeof createMcpHandler>
  readonly #subscribers = new Set<(event: ServerEvent) => void>()
  readonly #timers: (() => void)[] = []
  #listening: Listening | null = null
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #isSending = false
  #checking: Promise<boolean> | null = null
  #isEnding = false
  #unread = 0
  #isOver = false
  /** Is called once when the stream is over. */
  onOver: () => void = () => undefined

  constructor(clock: Clock, listener: Listener, factory: McpServerFactory) {
    this.#clock = clock
    this.#listener = listener
    this.#outbox = new ChangeOutbox(
      () => void this.#send(),
      () => this.end(),
    )
    const bus: ServerEventBus = {
      publish: event => {
        for (const subscriber of this.#subscribers) subscriber(event)
      },
      subscribe: subscriber => {
        this.#subscribers.add(subscriber)
        return () => this.#subscribers.delete(subscriber)
      },
    }
    this.#handler = createMcpHandler(factory, { legacy: 'reject', bus, keepAliveMs: 0, maxSubscriptions: 1 })
  }

  /** Returns the reply to the POST. The stream receives changes even before it sends its acknowledgement. Throws SurfaceError. */
  async open(request: Request, body: ListenBody, changes: ChangeSurface): Promise<Response> {
    try {
      this.#listening = await changes.listen(paramsOf(body), this.#outbox)
      const response = await this.#handler.fetch(request, { parsedBody: narrowed(body, this.#listening.granted) })
      const { body: frames } = response
      if (frames === null || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
        this.#over()
        return response
      }
      this.#watchCredential()
      return new Response(this.#paced(frames), { status: response.status, headers: response.headers })
    } catch (thrown) {
      this.#over()
      throw thrown
    }
  }

  /** Ends the stream in good order: the client receives the result of its request. */
  end(): void {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    void this.#handler.close()
    this.#clock.after(lastWordsMs, () => this.#listener.hangUp())
  }

  #watchCredential(): void {
    this.#timers.push(this.#clock.every(keepAliveMs, () => void this.#tick()))
    const { endsAtMs, cut } = this.#listener
    if (cut.aborted) this.end()
    else cut.addEventListener('abort', () => this.end(), { once: true })
    if (endsAtMs !== null) this.#timers.push(this.#clock.after(Math.min(Math.max(endsAtMs - this.#clock.nowMs(), 0), timerMaxMs), () => void this.#check()))
  }

  /**
   * Returns the frames at the pace of the reader. The SDK writes one frame for each notification. It therefore gets the next notification only when
   * the reader has room for another frame.
   */
  #paced(frames: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = frames.getReader()
    const relay = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      try {
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          controller.enqueue(value)
          this.#isSending = false
          void this.#send()
        }
        controller.close()
      } catch {
        // The reader has disconnected and cannot receive the end of the stream.
      } finally {
        this.#over()
      }
    }
    return new ReadableStream<Uint8Array>({
      start: controller => {
        this.#controller = controller
        void relay(controller)
      },
      pull: () => {
        this.#unread = 0
        void this.#send()
      },
      cancel: reason => {
        this.#over()
        return reader.cancel(reason)
      },
    })
  }

  get #hasRoom(): boolean {
    return !this.#isOver && (this.#controller?.desiredSize ?? 0) > 0
  }

  async #send(): Promise<void> {
    if (this.#isSending || this.#outbox.isEmpty || !this.#hasRoom) return
    this.#isSending = true
    const isGood = await this.#check()
    const next = isGood && this.#hasRoom ? this.#outbox.take() : null
    if (next === null) this.#isSending = false
    else for (const subscriber of this.#subscribers) subscriber(next)
  }

  async #tick(): Promise<void> {
    if (!(await this.#check())) return
    if (this.#hasRoom) {
      this.#controller?.enqueue(keepAlive)
      return
    }
    this.#unread++
    if (this.#unread >= unreadMax) this.#listener.hangUp()
  }

  /** Returns whether the credential is still valid, and ends the stream when it is not. */
  async #check(): Promise<boolean> {
    this.#checking ??= this.#listener.isStillGood().finally(() => {
      this.#checking = null
    })
    if (!(await this.#checking)) this.end()
    return !this.#isEnding && !this.#isOver
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const stop of this.#timers.splice(0)) stop()
    this.#listening?.stop()
    this.onOver()
  }
}
