/** Finds the batches whose creation had no known outcome, because the reply or the process was lost. Decision 0892 gives the reasons. */
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { ProviderAccount } from './provider-account.ts'
import { idShape, markerName, type RemoteBatch, remoteBatchOf } from './remote-batch.ts'

const minuteMs = 60_000
/** How much the clock of a provider may differ, and the longest time from the hold of a batch to its creation. */
const clockSkewMs = minuteMs
const creationMostMs = 5 * minuteMs
/** The most pages of 100 batches that are read. A batch that is not among them is not known to be absent. */
const pagesMost = 50

type Listed = Readonly<Record<string, unknown>>

/** Finds a batch by its marker among those of the account that are as new. Null when it is certainly not there. */
export async function findMarked(account: ProviderAccount, marker: string, admittedAtMs: number, signal?: CancelSignal): Promise<RemoteBatch | null> {
  for await (const batch of newest(account, '/batches', 'after', admittedAtMs - clockSkewMs, signal))
    if (isObject(batch['metadata']) && batch['metadata'][markerName] === marker) return remoteBatchOf('openai', batch)
  return null
}

/** Returns the batches of messages with this many requests that were made when a batch was admitted. No marker says whose they are. */
export async function findAlike(account: ProviderAccount, lines: number, admittedAtMs: number, signal?: CancelSignal): Promise<RemoteBatch[]> {
  const alike: RemoteBatch[] = []
  for await (const batch of newest(account, '/messages/batches', 'after_id', admittedAtMs - clockSkewMs, signal)) {
    const madeMs = madeAt(batch)
    const requests = requestsOf(batch)
    // Without time and size, no batch of the list can be ruled out.
    if (madeMs === null || requests === null) throw new Error(`${account.provider.id} does not say when its batches were made, or of how many requests`)
    if (madeMs <= admittedAtMs + creationMostMs && requests === lines) alike.push(remoteBatchOf('anthropic', batch))
  }
  return alike
}

/** Lists the batches that were made since a time, the newest first. Throws when there are more than it reads. */
async function* newest(account: ProviderAccount, path: string, cursor: string, sinceMs: number, signal?: CancelSignal): AsyncGenerator<Listed> {
  let after = ''
  for (let page = 0; page < pagesMost; page++) {
    const { data, has_more: hasMore } = await account.ask('GET', `${path}?limit=100${after}`, undefined, signal)
    if (!Array.isArray(data)) throw new Error(`${account.provider.id} lists no batches`)
    const batches = data.filter(isObject)
    for (const batch of batches) {
      const madeMs = madeAt(batch)
      if (madeMs !== null && madeMs < sinceMs) return
      yield batch
    }
    const last = batches.at(-1)?.['id']
    if (hasMore !== true || typeof last !== 'string' || !idShape.test(last)) return
    after = `&${cursor}=${last}`
  }
  throw new Error(`${account.provider.id} has more than ${pagesMost * 100} batches since then`)
}

/** Returns the time of creation in Unix milliseconds: seconds in OpenAI's format, a text in Anthropic's. Null when there is none. */
function madeAt({ created_at: made }: Listed): number | null {
  const ms = typeof made === 'number' ? made * 1000 : typeof made === 'string' ? Date.parse(made) : Number.NaN
  return Number.isFinite(ms) ? ms : null
}

function requestsOf({ request_counts: counts }: Listed): number | null {
  if (!isObject(counts)) return null
  const parts = ['processing', 'succeeded', 'errored', 'canceled', 'expired'].map(name => counts[name])
  return parts.reduce<number>((sum, part) => sum + (typeof part === 'number' ? part : 0), 0)
}
