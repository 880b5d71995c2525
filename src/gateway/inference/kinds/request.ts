import type { Form } from '../../../platform/endpoint.ts'
import type { Model } from '../../catalog/model.ts'
import type { Forwarded, HubRequest, NativeRequest } from '../../providers/dialect.ts'
import type { Attempt, Needs } from '../../routing/plan.ts'
import type { RouterFields } from '../../wire/chat/router-fields.ts'
import type { PromptMedia } from '../../wire/prompt-size.ts'
import type { TokenUsage } from '../../wire/usage.ts'

/** What came over the wire: the body, and of headers and query what the row lets through. */
export interface CallInput {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Query text without the `?`. */
  readonly query: string
  /** The form, for APIs that take one: `bytes` is then empty. */
  readonly form?: Form
}

/** An inference request as the pipeline works on it, whatever API it came by. */
export interface ParsedRequest {
  readonly modelId: string
  readonly fields: RouterFields
  readonly stream: boolean
  readonly operation: HubRequest['operation']
  /** The caller's ceiling on output tokens of the whole call, reasoning included; null = none. */
  readonly maxTokens: number | null
  /** How many answers are asked for: `n` of a chat request. */
  readonly answers: number
  /** Estimate, for holds and context windows. */
  readonly promptTokens: number
  /** Media of the prompt, which the estimate can only guess; left out: it is text alone. */
  readonly promptMedia?: PromptMedia | undefined
  /** Part of the estimate that a provider may leave unread: thought of earlier turns, and settings; left out: there is none. */
  readonly promptUnreadTokens?: number | undefined
  /** What a model must be able to do to be picked. */
  readonly needs: Needs
  /** The caller said include_usage: false: the usage chunk is metered and kept back. */
  readonly withholdUsage: boolean
  /** The request in the client's own format. */
  readonly native: NativeRequest
  /** The same in the hub format; may be made when it is first asked for. Throws `bad_request`. */
  readonly hub: HubRequest
  /** A provider credential that came with the request, for the provider that it is for. */
  readonly forwarded: Forwarded | null
  /** True: behind a forwarded credential that has run into its rate limit the saved key is tried. Left out: it is not. */
  readonly overflows?: boolean
  /** Throws `bad_request` when the request cannot be said to the route of an attempt. Asked of the first before anything is held; left out: it always can. */
  checkFor?(attempt: Attempt): void
  /** Throws when a model that is known cannot do what the request wants; left out: every model of the kind may be asked. */
  accepts?(model: Model): void
  /** What the user wrote last, for the choice of a model by what is asked. */
  promptText(): string
  /** The same request with a ceiling for each answer. */
  withMaxTokens(answerMaxTokens: number): ParsedRequest
  /** Units that are known before the dial (images asked for, characters to be spoken): what is held for. Left out: tokens alone. */
  readonly media?: TokenUsage['media']
}
