/** The APIs whose requests a batch may have. */
import { fail } from '../../../platform/errors.ts'
import { chatKind } from '../../inference/kinds/chat.ts'
import { embeddingsKind } from '../../inference/kinds/embeddings.ts'
import type { Kind } from '../../inference/kinds/kind.ts'
import { messagesKind } from '../../inference/kinds/messages.ts'
import { responsesKind } from '../../inference/kinds/responses.ts'
import type { HubRequest } from '../../providers/dialect.ts'
import type { DialectId } from '../../providers/provider.ts'

/** The path of an API, its kind, the wire format that a route must have, and what its replies are. */
export interface BatchKind {
  readonly endpoint: string
  readonly kind: Kind
  readonly dialect: DialectId
  readonly operation: HubRequest['operation']
}

export const messagesBatch: BatchKind = { endpoint: '/v1/messages', kind: messagesKind, dialect: 'anthropic', operation: 'chat' }

const kinds: readonly BatchKind[] = [
  { endpoint: '/v1/chat/completions', kind: chatKind, dialect: 'openai', operation: 'chat' },
  { endpoint: '/v1/responses', kind: responsesKind, dialect: 'openai-responses', operation: 'chat' },
  { endpoint: '/v1/embeddings', kind: embeddingsKind, dialect: 'openai', operation: 'embeddings' },
  messagesBatch,
]

/** The endpoints of batches in OpenAI's format. */
export const batchEndpoints = kinds.filter(kind => kind !== messagesBatch).map(({ endpoint }) => endpoint)

/** Returns the kind of an endpoint. Throws `bad_request`. */
export function batchKindOf(endpoint: string): BatchKind {
  const found = kinds.find(each => each.endpoint === endpoint)
  if (found === undefined) throw fail('bad_request', { message: `"${endpoint.slice(0, 100)}" takes no batches. These do: ${batchEndpoints.join(', ')}.` })
  return found
}
