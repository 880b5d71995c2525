/** A batch as its provider describes it, in either format. */
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { OutboundReply } from '../../../platform/outbound/upstream-body.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { ProviderAccount } from './provider-account.ts'

export type BatchFormat = 'openai' | 'anthropic'

export interface RemoteBatch {
  readonly id: string
  /** As the provider says it. */
  readonly status: string
  /** True when nothing more will come. */
  readonly isEnded: boolean
  readonly lines: number | null
  readonly completed: number
  readonly failed: number
  /** Files with results, and where each is read. Empty before the end. */
  readonly results: readonly { readonly purpose: 'output' | 'error'; readonly fileId: string | null; readonly path: string }[]
}

/** The member of a batch's metadata with the id that Brigade gave it. By it, a batch is found again whose creation had no known outcome. */
export const markerName = 'brigade_batch_id'

const endedStatuses: ReadonlySet<string> = new Set(['completed', 'failed', 'expired', 'cancelled', 'ended'])
/** Ids that can be part of a path. */
export const idShape = /^[\w.:-]{1,200}$/

/** Returns the id in a reply of a provider. Throws when it has none that can be part of a path. */
export function idIn(reply: Readonly<Record<string, unknown>>): string {
  const { id } = reply
  if (typeof id !== 'string' || !idShape.test(id)) throw new Error('the provider gave no id')
  return id
}

/** Reads a batch of a provider. Throws when the reply is none. */
export function remoteBatchOf(format: BatchFormat, reply: Readonly<Record<string, unknown>>): RemoteBatch {
  const id = idIn(reply)
  const status = String(reply[format === 'openai' ? 'status' : 'processing_status'] ?? '')
  if (!/^[a-z_]{1,30}$/.test(status)) throw new Error('the provider gave no status')
  const counts = isObject(reply['request_counts']) ? reply['request_counts'] : {}
  const isEnded = endedStatuses.has(status)
  if (format === 'anthropic') {
    const [succeeded, errored, canceled, expired] = ['succeeded', 'errored', 'canceled', 'expired'].map(name => countOf(counts[name]))
    const results =
      isEnded && typeof reply['results_url'] === 'string' ? [{ purpose: 'output' as const, fileId: null, path: `/messages/batches/${id}/results` }] : []
    return { id, status, isEnded, lines: null, completed: succeeded ?? 0, failed: (errored ?? 0) + (canceled ?? 0) + (expired ?? 0), results }
  }
  const files = isEnded ? (['output', 'error'] as const).flatMap(purpose => fileOf(purpose, reply[`${purpose}_file_id`])) : []
  return { id, status, isEnded, lines: countOf(counts['total']), completed: countOf(counts['completed']), failed: countOf(counts['failed']), results: files }
}

const countOf = (value: unknown): number => (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 1_000_000 ? value : 0)

function fileOf(purpose: 'output' | 'error', id: unknown): RemoteBatch['results'] {
  return typeof id === 'string' && idShape.test(id) ? [{ purpose, fileId: id, path: `/files/${id}/content` }] : []
}

const pathOf = (format: BatchFormat): string => (format === 'openai' ? '/batches' : '/messages/batches')

export async function askBatch(account: ProviderAccount, format: BatchFormat, id: string, signal?: CancelSignal): Promise<RemoteBatch> {
  return remoteBatchOf(format, await account.ask('GET', `${pathOf(format)}/${id}`, undefined, signal))
}

export async function cancelRemote(account: ProviderAccount, format: BatchFormat, id: string, signal?: CancelSignal): Promise<RemoteBatch> {
  return remoteBatchOf(format, await account.ask('POST', `${pathOf(format)}/${id}/cancel`, {}, signal))
}

export const openResults = (account: ProviderAccount, path: string, signal?: CancelSignal): Promise<OutboundReply> => account.download(path, signal)
