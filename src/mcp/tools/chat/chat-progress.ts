/** What a running chat tells of itself: the routes that were tried, and progress for clients that asked for it. */
import { tokensOfChars } from '../../../gateway/inference/charge/estimate.ts'
import type { RouteStep } from '../../../platform/endpoint.ts'
import type { ToolContext } from '../toolbox/tool.ts'
import type { ChatAnswer } from './chat-stream.ts'

/** At most one notification of the answer in this time. */
const progressEveryMs = 1000
/** A client that gets nothing for about a minute gives up; models that think may be silent for longer. */
const waitingEveryMs = 15_000
/** What a failover and a wait count: progress rises with each notification and stays below the next token. */
const nudge = 0.001

/** One route that was tried. */
export interface ChatAttempt {
  readonly provider: string
  readonly model: string
  readonly outcome: 'answered' | 'failed' | 'unanswered'
  readonly why?: string
}

/**
 * Follows one chat. Progress rises with each notification and is the estimated number of tokens so far; a failover is told immediately,
 * the answer at most once a second, a silence every 15 s. Text of the answer is in it only when `streamsText`.
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

  /** The routes so far, in the order of their dials. */
  get attempts(): readonly ChatAttempt[] {
    const open = this.#route
    return open?.outcome === 'dialed' ? [...this.#attempts, { provider: open.provider, model: open.model, outcome: 'unanswered' }] : this.#attempts
  }

  /** The route that was dialed last. */
  get route(): RouteStep | null {
    return this.#route
  }

  /** Says that the call begins, and that it goes on while nothing comes, until `end`. */
  begin(model: string): void {
    this.#say(0, `asking ${model}`)
    if (this.#context.report) this.#waitOn()
  }

  /** Says no more. */
  end(): void {
    this.#stop()
  }

  /** A route is dialed, answers or fails. */
  step(step: RouteStep): void {
    const failed = this.#attempts.at(-1)
    this.#route = step
    const { outcome, provider, model, why } = step
    if (outcome !== 'dialed') this.#attempts.push({ provider, model, outcome, ...(why === undefined ? {} : { why }) })
    else if (failed?.outcome === 'failed')
      this.#say(this.#said + nudge, `${failed.provider} failed, trying ${provider}${model === failed.model ? '' : ` with ${model}`}`)
  }

  /** More of the answer is here. */
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
