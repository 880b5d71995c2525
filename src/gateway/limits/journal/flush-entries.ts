/**
 * Flushes a portion of the journal that may hold a record which the database will never take. Such a record must not keep the others
 * out: the portion is halved until the record is alone; then it is parked, with its bytes and its money, in a table that the doctor counts.
 */
import type { ChargedEvent } from '../engine/admission.ts'
import { parkedBytes } from '../parked-records.ts'
import { batchOf, type FlushRange, type FlushResult, type FlushTools, flushBatch } from './flush-batch.ts'
import type { JournalRecord } from './journal-records.ts'
import { insertParked } from './recovery-queries.ts'

/** Most of what the database says of a refusal that is kept. */
const reasonMaxChars = 300

/** A record with the offset behind it; null: it never was in the journal, and its event id alone guards it. */
interface FlushEntry<E extends ChargedEvent> {
  readonly record: JournalRecord<E>
  readonly endOffset: number | null
}

export type EntriesResult =
  | FlushResult
  /** The database refused some record of these: try fewer. */
  | { readonly kind: 'refused' }

/** How many records go together: many, and fewer and fewer while a refused one is searched. */
export class PortionSize {
  readonly #most: number
  records: number

  constructor(most: number) {
    this.#most = most
    this.records = most
  }

  /** Follows the answer to a portion; true when the same records are to be tried again in a smaller one. */
  follow(result: EntriesResult): boolean {
    const isRefused = result.kind === 'refused'
    this.records = isRefused ? Math.max(1, Math.ceil(this.records / 2)) : Math.min(this.#most, this.records * 2)
    return isRefused
  }
}

/**
 * Writes entries behind `range.from` in one transaction. A single entry that the database refuses is parked instead, and that is 'done'.
 * Throws what `flushBatch` throws when it is no fault of a record; the outcome is unknown then.
 */
export async function flushEntries<E extends ChargedEvent>(
  tools: FlushTools<E>,
  range: Omit<FlushRange, 'to'>,
  entries: readonly FlushEntry<E>[],
): Promise<EntriesResult> {
  const whole = { ...range, to: entries[entries.length - 1]?.endOffset ?? null }
  try {
    return await flushBatch(tools, whole, batchOf(entries.map(entry => entry.record)))
  } catch (error) {
    const [first, ...others] = entries
    if (!isFaultOfRecord(error) || first === undefined) throw error
    return others.length > 0 ? { kind: 'refused' } : await park(tools, whole, first.record, error)
  }
}

/**
 * Data that does not fit (class 22), a broken constraint (23), a row beyond a limit of the program (54), or a field that this version
 * cannot read. What the connection, the load or the schema causes is none of these and is tried again.
 */
function isFaultOfRecord(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return true
  return error instanceof Error && 'severity' in error && 'code' in error && /^(22|23|54)/.test(String(error.code))
}

/** Keeps the record beside the usage rows. What it gives back is given back; its money is in no budget, only in the parked row. */
async function park<E extends ChargedEvent>(tools: FlushTools<E>, range: FlushRange, record: JournalRecord<E>, cause: unknown): Promise<FlushResult> {
  const reason = cause instanceof Error ? `${'code' in cause ? `${cause.code} ` : ''}${cause.message}` : 'unknown'
  const { event } = record.kind === 'settle' ? record : { event: null }
  const bytes = parkedBytes(record)
  const write = (effects: readonly JournalRecord<E>[]): Promise<FlushResult> =>
    flushBatch(tools, range, batchOf(effects), async tx => {
      await tx.exec(
        insertParked,
        range.processId,
        BigInt(range.to ?? range.from),
        record.kind,
        String(event?.id ?? ''),
        String(event?.valueUinr ?? 0n),
        reason.slice(0, reasonMaxChars).replaceAll('\u0000', ''),
        bytes,
      )
    })
  tools.log.error('usage_record_parked', { processId: String(range.processId), error: cause })
  try {
    return await write(effectsOf(record))
  } catch (error) {
    if (!isFaultOfRecord(error)) throw error
    // Even the counters refuse it: then what it leased goes back when this process ends.
    return write([])
  }
}

/** What a record means beside its usage row: released leases, and the request of the day, which did happen. */
function effectsOf<E extends ChargedEvent>(record: JournalRecord<E>): JournalRecord<E>[] {
  if (record.kind !== 'settle') return [record]
  const { counts } = record
  const released = record.released.filter(([id]) => !counts.some(([counted]) => counted === id))
  return [
    { kind: 'return', released },
    { kind: 'count', counts },
  ]
}
