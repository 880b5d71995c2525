/** Parked records: usage records that the database refused. The operator decides about them. Decision 0200 gives the reasons. */
import type { ChargedEvent } from './engine/admission.ts'
import { chargeLate, type FlushTools } from './journal/flush-batch.ts'
import type { JournalRecord } from './journal/journal-records.ts'
import { deleteParked, findParked, listParked, type ParkedRow } from './journal/recovery-queries.ts'

/** The most records of one list. */
const listMax = 100

/** A parked record. */
export interface ParkedRecord {
  readonly id: bigint
  readonly at: Date
  /** The process that wrote the record in its journal. */
  readonly processId: bigint
  readonly kind: string
  /** Empty for a record without an event. */
  readonly eventId: string
  /** Null for a record without an event, or when the bytes cannot be read. */
  readonly orgId: number | null
  /** The record's money in micro-rupees. It is in no budget. */
  readonly valueUinr: bigint
  /** The database's error message. */
  readonly reason: string
}

/** Lists, applies and discards parked records. */
export class ParkedRecords<E extends ChargedEvent> {
  readonly #tools: FlushTools<E>
  /** The fields of an event that are bigints, for records that do not name them. */
  readonly #bigFields: readonly string[]

  constructor(tools: FlushTools<E>) {
    this.#tools = tools
    this.#bigFields = tools.codec?.bigFields ?? []
  }

  /** Returns at most 100 records with ids above `aboveId`, the oldest first. */
  async list(aboveId: bigint): Promise<readonly ParkedRecord[]> {
    return (await this.#tools.db.many(listParked, aboveId, listMax)).map(viewOf)
  }

  /**
   * Charges the event of a record and deletes the record, in one transaction. `isCharged` is false when the event was already charged. Throws an
   * Error of one line when there is no such record, when it has no event, or when the database still refuses it. The record then stays.
   */
  async apply(id: bigint): Promise<{ readonly record: ParkedRecord; readonly isCharged: boolean }> {
    const row = await this.#find(id)
    const record = this.#read(row)
    if (record?.kind !== 'settle')
      throw new Error(`parked record ${id} has no charge: what it held went back when it was parked or when its process ended. Discard it`)
    try {
      const isCharged = await chargeLate(this.#tools, row.processId, record, tx => this.#take(tx, id))
      return { record: viewOf(row), isCharged }
    } catch (error) {
      if (!(error instanceof Error) || !('severity' in error)) throw error
      throw new Error(`the database still refuses parked record ${id}: ${error.message}. It stays; discard it if its cause cannot be removed`, { cause: error })
    }
  }

  /** Deletes a record without a charge. Throws an Error of one line when there is no such record. */
  async discard(id: bigint): Promise<ParkedRecord> {
    const row = await this.#find(id)
    await this.#take(this.#tools.db, id)
    return viewOf(row)
  }

  async #find(id: bigint): Promise<ParkedRow> {
    const row = await this.#tools.db.maybe(findParked, id)
    if (row === null) throw gone(id)
    return row
  }

  async #take(db: Pick<FlushTools<E>['db'], 'exec'>, id: bigint): Promise<void> {
    if ((await db.exec(deleteParked, id)) === 0) throw gone(id)
  }

  #read({ id, record }: ParkedRow): JournalRecord<E> | null {
    const parsed = parse(record)
    if (parsed === null) throw new Error(`the bytes of parked record ${id} cannot be read. Discard it`)
    const { event } = parsed
    if (event !== undefined) for (const name of parsed.big ?? this.#bigFields) if (event[name] !== undefined) event[name] = BigInt(String(event[name]))
    delete parsed.big
    return parsed as unknown as JournalRecord<E>
  }
}

/** Returns a record as the bytes that are kept: JSON, with the names of the event's bigint fields. */
export function parkedBytes<E extends ChargedEvent>(record: JournalRecord<E>): Buffer {
  const big = 'event' in record ? Object.entries(record.event).flatMap(([name, value]) => (typeof value === 'bigint' ? [name] : [])) : []
  return Buffer.from(JSON.stringify({ ...record, big }, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
}

interface ParkedJson {
  kind?: string
  event?: Record<string, unknown>
  charge?: { readonly orgId?: number }
  big?: readonly string[]
}

function parse(bytes: Buffer): ParkedJson | null {
  try {
    return JSON.parse(bytes.toString()) as ParkedJson
  } catch {
    return null
  }
}

function viewOf({ record, valueUinr, ...row }: ParkedRow): ParkedRecord {
  return { ...row, valueUinr: BigInt(valueUinr), orgId: parse(record)?.charge?.orgId ?? null }
}

const gone = (id: bigint): Error => new Error(`there is no parked record ${id}; brigade admin parked list shows those that there are`)
