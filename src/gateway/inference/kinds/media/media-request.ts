import type { HubRequest, NativeRequest } from '../../../providers/dialect.ts'
import type { Needs } from '../../../routing/plan.ts'
import type { RouterFields } from '../../../wire/chat/router-fields.ts'
import type { TokenUsage } from '../../../wire/usage.ts'
import type { ParsedRequest } from '../request.ts'

const noNeeds: Needs = Object.freeze({ tools: false, vision: false })

/** The common part of requests that have no hub format: images and audio, which count units instead of tokens, rankings and moderations. */
export abstract class MediaRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly forwarded = null
  readonly maxTokens = 0
  readonly answers = 1
  readonly promptTokens: number
  readonly needs = noNeeds
  readonly withholdUsage = false
  readonly modelId: string
  readonly fields: RouterFields
  abstract readonly stream: boolean
  abstract readonly media: NonNullable<TokenUsage['media']>
  /** The client's fields without files and router fields. They are kept as the request, and errors must not quote them. */
  readonly #body: Readonly<Record<string, unknown>>

  constructor(modelId: string, fields: RouterFields, body: Readonly<Record<string, unknown>>, promptTokens = 0) {
    this.promptTokens = promptTokens
    this.modelId = modelId
    this.fields = fields
    this.#body = body
  }

  get native(): NativeRequest {
    return { format: 'openai', body: this.#body, bytes: null, stream: this.stream, headers: {}, query: '' }
  }

  /** Performers of media never read this. */
  get hub(): HubRequest {
    throw new Error('a request of this kind has no chat form')
  }

  promptText(): string {
    return ''
  }

  withMaxTokens(): ParsedRequest {
    return this
  }
}
