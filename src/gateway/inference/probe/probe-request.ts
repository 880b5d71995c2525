/** The request of a canary. It is constant and as small as a call can be. */
import type { ModelKind } from '../../catalog/model.ts'
import type { ChainStep } from '../../wire/chat/router-fields.ts'
import { chatKind } from '../kinds/chat.ts'
import { embeddingsKind } from '../kinds/embeddings.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'

export interface ProbeRequest {
  readonly kind: Kind
  readonly request: ParsedRequest
}

/** The kinds of models for which canaries are made. */
export const probedKinds: readonly ModelKind[] = ['chat', 'virtual', 'embedding']

/** The output tokens of a canary. */
const probeTokens = 1
/** The output tokens of the second try, at a provider that refuses a limit of one token. */
export const secondTryTokens = 16

/**
 * Returns the canary for one step of a chain. The step is the `fallbacks` of the request, so that routing treats the canary like a call that
 * comes to this step. Null for kinds whose smallest call costs real money (images, audio).
 */
export function probeRequestOf(modelId: string, kind: ModelKind, step: ChainStep): ProbeRequest | null {
  if (!probedKinds.includes(kind)) return null
  const fallbacks = [step.provider === null ? { model: step.model } : { model: step.model, provider: step.provider }]
  if (kind === 'embedding') return parsedBy(embeddingsKind, { model: modelId, input: 'ping', fallbacks })
  return parsedBy(chatKind, { model: modelId, messages: [{ role: 'user', content: 'ping' }], max_tokens: probeTokens, fallbacks })
}

const parsedBy = (kind: Kind, body: object): ProbeRequest => ({
  kind,
  request: kind.parse({ bytes: Buffer.from(JSON.stringify(body)), headers: {}, query: '' }),
})

/** Returns true when a refusal is about the limit of output tokens. Some models refuse such a low limit, or report an error when they reach it. */
export const isAboutTheLimit = (status: number, text: string): boolean =>
  (status === 400 || status === 422) && /max_(?:completion_|output_)?tokens|maxOutputTokens|output (?:token )?limit/i.test(text)
