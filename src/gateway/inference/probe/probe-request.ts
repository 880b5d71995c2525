/** What a canary asks: a constant, as small as a call can be. */
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

/** Kinds of models of which canaries are made. */
export const probedKinds: readonly ModelKind[] = ['chat', 'virtual', 'embedding']

/** Output tokens of a canary. */
const probeTokens = 1
/** Output tokens of the second try at a provider that takes no limit as low as that. */
export const secondTryTokens = 16

/**
 * The request of a canary of one step of a chain: the step is its `fallbacks`, so that routing does what it does for a call that comes to
 * that step. Null for kinds of which even the smallest call costs real money (images, audio).
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

/** Whether a refusal is about how many tokens may come out: some models take no limit that low, or call it an error to reach it. */
export const isAboutTheLimit = (status: number, text: string): boolean =>
  (status === 400 || status === 422) && /max_(?:completion_|output_)?tokens|maxOutputTokens|output (?:token )?limit/i.test(text)
