/** Corrects the index for keys at which a bucket and its index differ. */
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import { joinKey } from '../memory-key.ts'
import { writtenMsOf } from '../provenance.ts'
import type { ObjectHead } from '../stores/object-store.ts'
import { healKeys, type IndexedRow, indexedOf, takeKeys } from './reconcile-queries.ts'
import type { ReconcileTurns } from './reconcile-turns.ts'
import { RepairNews } from './repair-news.ts'

/** Maximum number of keys that one check takes together. A writer of one of these keys waits until the check ends. */
export const keysAtOnce = 64
const headsAtOnce = 8

export interface HealingDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  /** Time after which the keys of one chunk are free again, if the process dies. */
  readonly intentMs: number
  readonly turns: Pick<ReconcileTurns, 'heal'>
}

/** What a comparison has found and corrected so far. */
export interface Counts {
  checked: number
  added: number
  changed: number
  removed: number
  skipped: number
}

/** One object of the store and its entry in the index. A field is null when there is no such object or entry. */
interface Compared {
  readonly key: string
  readonly known: IndexedRow | null
  readonly head: ObjectHead | null
}

export class Healing {
  readonly #deps: HealingDeps
  readonly #news: RepairNews

  constructor(deps: HealingDeps) {
    this.#deps = deps
    this.#news = new RepairNews(deps.clock)
  }

  /** Takes the keys, reads the store and the index again, and corrects the index where they still differ. */
  async heal(configured: ConfiguredStore, keys: readonly string[], counts: Counts, signal: AbortSignal): Promise<void> {
    const { db, clock, ids, intentMs, turns } = this.#deps
    const { orgId, generation } = configured.row
    const nowMs = clock.nowMs()
    const writeId = ids.uuidv7(nowMs)
    const take = () => db.many(takeKeys, orgId, keys, writeId, generation, new Date(nowMs), new Date(nowMs + intentMs))
    const taken = (await turns.heal(take)).map(row => row.key)
    counts.skipped += keys.length - taken.length
    let wrong: Compared[] = []
    try {
      wrong = (await this.#compare(configured, taken, signal)).filter(isWrong)
    } finally {
      const healed = wrong.map(({ key, head }) => ({ key, head, writtenAt: new Date(head === null ? 0 : writtenMsOf(head)) }))
      const made = await turns.heal(() =>
        db.maybe(
          healKeys,
          orgId,
          writeId,
          healed.map(({ key }) => key),
          healed.map(({ head }) => head?.etag ?? null),
          healed.map(({ head }) => head?.metadata['br-sha256'] ?? null),
          healed.map(({ head }) => BigInt(head?.sizeBytes ?? 0)),
          healed.map(({ writtenAt }) => writtenAt),
          healed.map(({ head }) => writeIdOf(head)),
          this.#news.left(orgId),
        ),
      )
      this.#news.note(orgId, made?.news ?? 0)
    }
    for (const { known, head } of wrong) {
      if (known === null) counts.added++
      else if (head === null) counts.removed++
      else counts.changed++
    }
  }

  async #compare({ row, store }: ConfiguredStore, keys: readonly string[], signal: AbortSignal): Promise<Compared[]> {
    const known = new Map((await this.#deps.db.many(indexedOf, row.orgId, keys)).map(indexed => [indexed.key, indexed]))
    const compared: Compared[] = []
    const left = keys.values()
    const worker = async (): Promise<void> => {
      for (const key of left) {
        const head = await store.head(joinKey(row.orgId, key), { signal })
        compared.push({ key, known: known.get(key) ?? null, head })
      }
    }
    await Promise.all(Array.from({ length: headsAtOnce }, worker))
    return compared
  }
}

function isWrong({ known, head }: Compared): boolean {
  return known?.etag !== head?.etag || (known === null ? null : Number(known.sizeBytes)) !== (head?.sizeBytes ?? null)
}

/** Returns the id of the gateway's write that made the object. Returns null for a value that the bucket's owner invented. */
function writeIdOf(head: ObjectHead | null): string | null {
  const text = head?.metadata['br-write-id']
  return text !== undefined && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(text) ? text : null
}
