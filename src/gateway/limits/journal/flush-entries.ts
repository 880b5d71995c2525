/**
 * Flushes a portion of the journal that may contain a record which the database never takes. Such a record must not delay the others. So the
 * portion is halved until the record is alone. The record is then parked with its bytes and its money in a table that the doctor counts.
 */
import type { ChargedEvent } from '../engine/admission.ts'
import { parkedBytes } from '../parked-records.ts'
import { batchOf, type FlushRange, type FlushResult, type FlushTools, flushBatch } from './flush-batch.ts'
import type { JournalRecord } from './journal-records.ts'
import { insertParked } from './recovery-queries.ts'

/** The most characters of the database's error message that are kept. */
const reasonMaxChars = 300

/** A record with the offset after it. The offset is null for a record that was never in the journal; then only its event id guards against double counting. */
interface FlushEntry<E extends ChargedEvent> {
  readonly record: JournalRecord<E>
  readonly endOffset: number | null
}

export type EntriesResult =
  | FlushResult
  /** The database refused one of these records. The caller tries fewer. */
  | { readonly kind: 'refused' }

/** The number of records that are written together. It shrinks while a refused record is searched and grows again after that. */
export class PortionSize {
  readonly #most: number
  records: number

  constructor(most: number) {
    this.#most = most
    this.records = most
  }

  /** Adjusts the number to the result of a portion. Returns true when the same records must be tried again in a smaller portion. */
  follow(result: EntriesResult): boolean {
    const isRefused = result.kind === 'refused'
    this.records = isRefused ? Math.max(1, Math.ceil(this.records / 2)) : Math.min(this.#most, this.records * 2)
    return isRefused
  }
}

/**
 * Writes the entries after `range.from` in one transaction. A single entry that the database refuses is parked, and the result is `done`. Throws
 * the errors of `flushBatch` that no record causes; the outcome is unknown then.
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
 * Returns true for an error that the record causes. These are data that does not fit (class 22), a broken constraint (23), a row beyond a limit
 * of the program (54), and a field that this version cannot read. Errors of the connection, the load or the schema are not among them, and the
 * write is tried again.
 */
function isFaultOfRecord(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return true
  return error instanceof Error && 'severity' in error && 'code' in error && /^(22|23|54)/.test(String(error.code))
}

/** Parks a record beside the usage rows. The leases that it releases are given back. Its money is in no budget, only in the parked row. */
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
    // Even the counters refuse the record. Its leases then go back when this process ends.
    return write([])
  }
}

/** Returns the effects of a record other than its usage row: released leases, and the day's request, which did happen. */
function effectsOf<E extends ChargedEvent>(record: JournalRecord<E>): JournalRecord<E>[] {
  if (record.kind !== 'settle') return [record]
  const { counts } = record
  const released = record.released.filter(([id]) => !counts.some(([counted]) => counted === id))
  return [
    { kind: 'return', released },
    { kind: 'count', counts },
  ]
}
