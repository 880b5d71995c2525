import type { Form } from '../../../platform/endpoint.ts'
import type { Model } from '../../catalog/model.ts'
import type { Forwarded, HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt, Needs } from '../../routing/plan.ts'
import type { RouterFields } from '../../wire/chat/router-fields.ts'
import type { PromptMedia } from '../../wire/prompt-size.ts'
import type { TokenUsage } from '../../wire/usage.ts'

/** A request as received: the body, and the headers and query that the endpoint lets through. */
export interface CallInput {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The query text without the `?`. */
  readonly query: string
  /** The form, in APIs that take one. `bytes` is then empty. */
  readonly form?: Form
}

/** Returns true for a body that asks its model to think, in any format. Providers have models that think although their catalog row does not say so. */
export const asksThought = (body: Readonly<Record<string, unknown>>): boolean =>
  isNamed(body['reasoning']) ||
  (isNamed(body['reasoning_effort']) && body['reasoning_effort'] !== 'none') ||
  isNamed(body['include_reasoning']) ||
  isNamed(body['thinking']) ||
  isNamed(body['thinking_budget']) ||
  body['enable_thinking'] === true ||
  isNamed(body['chat_template_kwargs'])

const isNamed = (value: unknown): boolean => value !== undefined && value !== null

/** Returns the prompt's tokens for the choice of a route. A prompt that fits into a context window by its bytes is not refused because of its digits. */
export const routedTokensOf = ({ promptTokens, promptDigitTokens }: Pick<ParsedRequest, 'promptTokens' | 'promptDigitTokens'>): number =>
  promptTokens - (promptDigitTokens ?? 0)

/** An inference request of any API, in the form that the pipeline works with. */
export interface ParsedRequest {
  readonly modelId: string
  readonly fields: RouterFields
  readonly stream: boolean
  readonly operation: HubRequest['operation']
  /** The caller's limit on output tokens of the whole call, including reasoning. Null when there is none. */
  readonly maxTokens: number | null
  /** The number of requested answers: `n` in a chat request. */
  readonly answers: number
  /** True when the request asks its model to think. Left out: it does not. */
  readonly asksThought?: boolean
  /** The estimate of the prompt, for holds and context windows. */
  readonly promptTokens: number
  /** The media of the prompt, whose tokens the estimate can only guess. Absent when the prompt is text only. */
  readonly promptMedia?: PromptMedia | undefined
  /** The part of the estimate that a provider may leave unread: the thinking of earlier turns, and settings. Absent when there is none. */
  readonly promptUnreadTokens?: number | undefined
  /** The part of the estimate that only tokenizers with a token for each digit count. A context window is compared without it. Absent when there is none. */
  readonly promptDigitTokens?: number | undefined
  /** The abilities that a model needs to serve the request. */
  readonly needs: Needs
  /** True when the caller sent `include_usage: false`. The usage chunk is then metered and not sent on. */
  readonly withholdUsage: boolean
  /** The request in the client's own format. */
  readonly native: NativeRequest
  /** The request in the hub format. It may be made at the first read. Throws `bad_request`. */
  readonly hub: HubRequest
  /** A provider credential that came with the request. It goes only to its provider. */
  readonly forwarded: Forwarded | null
  /** True when the saved key is tried after a forwarded credential that has reached its rate limit. Absent means false. */
  readonly overflows?: boolean
  /**
   * Throws `bad_request` when the request cannot be expressed for the attempt's route. Admission calls it for the first attempt before the hold.
   * Absent when every route can express the request.
   */
  checkFor?(attempt: Attempt): void
  /** Throws when a known model cannot do what the request needs. Absent when every model of the kind may be asked. */
  accepts?(model: Model): void
  /** Returns the user's last text, for the choice of a model by the topic. */
  promptText(): string
  /** Returns the same request with a token limit for each answer. */
  withMaxTokens(answerMaxTokens: number): ParsedRequest
  /** Returns the same request for at most this many pictures. Absent when the request makes none. */
  withImages?(images: number): ParsedRequest
  /** The units that are known before the dial and are held for, such as requested images or characters to speak. Absent when only tokens count. */
  readonly media?: TokenUsage['media']
  /** The most units that the provider may bill for the request. Absent when it bills those of `media`. */
  readonly mediaMost?: TokenUsage['media']
}
