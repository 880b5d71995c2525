import type { CallOptions, ReplyOf } from '../../../api/call.ts'
import type { Step } from '../../steps/draft-steps.ts'
import type { ModelKind } from '../../steps/use-models.ts'

export const orders = ['price', 'latency', 'throughput', 'uptime', 'quality', 'auto'] as const
export type Order = (typeof orders)[number]

/** The call that a person describes. */
export interface CallDraft {
  readonly message: string
  readonly order: Order
  readonly place: 'anywhere' | 'india_only'
  readonly provider: string
  readonly hasTools: boolean
  readonly hasPicture: boolean
}

export const usualCall: CallDraft = { message: '', order: 'price', place: 'anywhere', provider: '', hasTools: false, hasPicture: false }

export type Preview = ReplyOf<'previewRoute'>
type PreviewBody = CallOptions<'previewRoute'>['body']

/** Returns whether calls of a model have messages. The gateway knows from the model which fields the other kinds have. */
export const hasMessages = (kind: ModelKind | undefined): boolean => kind === undefined || kind === 'chat' || kind === 'virtual'

/** The smallest picture, so that the call has one. */
const dot = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const tool = { type: 'function', function: { name: 'look_up', description: 'Looks a word up.', parameters: { type: 'object', properties: {} } } }

/** Returns the body of the call. Steps are those of a draft, which the gateway does not know yet (Decision 0889). */
export function previewBody(
  model: string,
  kind: ModelKind | undefined,
  { message, order, place, provider, hasTools, hasPicture }: CallDraft,
  steps?: readonly Step[],
): PreviewBody {
  const said = message.trim() === '' ? 'Hello' : message
  const content = hasPicture
    ? [
        { type: 'text', text: said },
        { type: 'image_url', image_url: { url: dot } },
      ]
    : said
  const body = {
    model,
    ...(steps === undefined ? {} : { fallbacks: steps }),
    ...(order === 'price' ? {} : { optimize: order }),
    ...(place === 'anywhere' ? {} : { data_policy: place }),
    ...(provider.trim() === '' ? {} : { provider: provider.trim() }),
    ...(hasMessages(kind) ? { messages: [{ role: 'user', content }], ...(hasTools ? { tools: [tool] } : {}) } : {}),
  }
  return body
}
