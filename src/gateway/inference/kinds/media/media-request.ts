import type { HubRequest, NativeRequest } from '../../../providers/dialect.ts'
import type { Needs } from '../../../routing/plan.ts'
import type { RouterFields } from '../../../wire/chat/router-fields.ts'
import type { TokenUsage } from '../../../wire/usage.ts'
import type { ParsedRequest } from '../request.ts'

const noNeeds: Needs = Object.freeze({ tools: false, vision: false })

/** The common part of requests for images and audio. They count units instead of tokens and have no hub format. */
export abstract class MediaRequest implements ParsedRequest {
  readonly operation = 'chat'
  readonly forwarded = null
  readonly maxTokens = 0
  readonly answers = 1
  readonly promptTokens = 0
  readonly needs = noNeeds
  readonly withholdUsage = false
  readonly modelId: string
  readonly fields: RouterFields
  abstract readonly stream: boolean
  abstract readonly media: NonNullable<TokenUsage['media']>
  /** The client's fields without files and router fields. They are kept as the request, and errors must not quote them. */
  readonly #body: Readonly<Record<string, unknown>>

  constructor(modelId: string, fields: RouterFields, body: Readonly<Record<string, unknown>>) {
    this.modelId = modelId
    this.fields = fields
    this.#body = body
  }

  get native(): NativeRequest {
    return { format: 'openai', body: this.#body, bytes: null, stream: this.stream, headers: {}, query: '' }
  }

  /** Performers of media never read this. */
  get hub(): HubRequest {
    throw new Error('a request for images or audio has no chat form')
  }

  promptText(): string {
    return ''
  }

  withMaxTokens(): ParsedRequest {
    return this
  }
}
