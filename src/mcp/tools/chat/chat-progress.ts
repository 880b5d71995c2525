/** Reports on a running chat: the routes that were tried, and progress for clients that asked for it. */
import { tokensOfChars } from '../../../gateway/inference/charge/estimate.ts'
import type { RouteStep } from '../../../platform/endpoint.ts'
import type { ToolContext } from '../toolbox/tool.ts'
import type { ChatAnswer } from './chat-stream.ts'

/** Minimum time between two notifications about the answer. */
const progressEveryMs = 1000
/**
 * Time between two notifications while nothing arrives. A client that receives nothing for about a minute gives up, and a thinking model may be
 * silent for longer.
 */
const waitingEveryMs = 15_000
/** The amount that a failover or a wait adds to the progress value. The value rises with each notification, but stays below the next whole token. */
const nudge = 0.001

/** One route that was tried. */
export interface ChatAttempt {
  readonly provider: string
  readonly model: string
  readonly outcome: 'answered' | 'failed' | 'unanswered'
  readonly why?: string
}

/**
 * Follows one chat and reports its progress. The progress value is the estimated number of tokens so far, and it rises with each notification. A
 * failover is reported immediately, the answer at most once a second, and a silence every 15 s. A notification contains text of the answer only when
 * `streamsText` is true.
 */
export class ChatProgress {
  readonly #answer: ChatAnswer
  readonly #context: ToolContext
  readonly #streamsText: boolean
  readonly #startedMs: number
  readonly #attempts: ChatAttempt[] = []
  #route: RouteStep | null = null
  #said = -1
  #saidMs: number
  #saidChars = 0
  #stop: () => void = () => undefined

  constructor(answer: ChatAnswer, context: ToolContext, streamsText: boolean) {
    this.#answer = answer
    this.#context = context
    this.#streamsText = streamsText
    this.#startedMs = context.clock.monotonicMs()
    this.#saidMs = this.#startedMs
  }

  /** Returns the routes so far, in the order in which they were dialed. */
  get attempts(): readonly ChatAttempt[] {
    const open = this.#route
    return open?.outcome === 'dialed' ? [...this.#attempts, { provider: open.provider, model: open.model, outcome: 'unanswered' }] : this.#attempts
  }

  /** Returns the route that was dialed last. */
  get route(): RouteStep | null {
    return this.#route
  }

  /** Reports that the call begins. Until `end`, it also reports after every 15 s of silence that the call continues. */
  begin(model: string): void {
    this.#say(0, `asking ${model}`)
    if (this.#context.report) this.#waitOn()
  }

  /** Stops all reports. */
  end(): void {
    this.#stop()
  }

  /** Records that a route is dialed, answers or fails. Reports a failover when another route is dialed after a failure. */
  step(step: RouteStep): void {
    const failed = this.#attempts.at(-1)
    this.#route = step
    const { outcome, provider, model, why } = step
    if (outcome !== 'dialed') this.#attempts.push({ provider, model, outcome, ...(why === undefined ? {} : { why }) })
    else if (failed?.outcome === 'failed')
      this.#say(this.#said + nudge, `${failed.provider} failed, trying ${provider}${model === failed.model ? '' : ` with ${model}`}`)
  }

  /** Reports that more of the answer has arrived. */
  piece(): void {
    const nowMs = this.#context.clock.monotonicMs()
    const { chars, provider } = this.#answer
    const tokens = tokensOfChars(chars)
    if (nowMs - this.#saidMs < progressEveryMs || tokens <= this.#said) return
    const { text } = this.#answer
    const fresh = text.slice(this.#saidChars)
    const says = this.#streamsText && fresh !== '' ? fresh : `${tokens} tokens, provider ${provider ?? 'unknown'}, ${this.#seconds()} s`
    if (!this.#say(tokens, says)) return
    this.#saidMs = nowMs
    this.#saidChars = text.length
  }

  #waitOn(): void {
    this.#stop = this.#context.clock.after(waitingEveryMs, () => {
      if (this.#context.clock.monotonicMs() - this.#saidMs >= waitingEveryMs) this.#say(this.#said + nudge, `waiting, ${this.#seconds()} s`)
      this.#waitOn()
    })
  }

  #seconds(): string {
    return ((this.#context.clock.monotonicMs() - this.#startedMs) / 1000).toFixed(1)
  }

  #say(progress: number, message: string): boolean {
    if (!this.#context.report || progress <= this.#said) return false
    this.#said = progress
    this.#context.report({ progress, message })
    return true
  }
}
