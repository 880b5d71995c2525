/**
 * The records of the usage journal and their encoding: 4 bytes length, 4 bytes crc32 of the payload, then the payload. Decision 0531 gives the
 * reasons.
 *
 * | first byte | payload |
 * |---|---|
 * | `{` | a record in JSON. A bigint is written as text, and `big` names the event's fields that are bigints |
 * | 1 | facts: what the calls of a caller on a route have in common, in JSON |
 * | 2, 3, 4 | an `open`, `progress` or `settle` record with the offset of its facts (float64), its counts, for `settle` its released amounts, and its event |
 *
 * Numbers are little-endian. A list of amounts is its length in one byte, then a counter id and an amount (int64 each) for each entry. The facts of a
 * record are in the same segment, before the record. Fields of an event are those of its type, which has no content of calls.
 */
import { crc32 } from 'node:zlib'
import type { ChargedEvent } from '../engine/admission.ts'
import type { Scope } from '../engine/counters/counter-state.ts'

/** Pairs of counter id and amount. */
export type Amounts = readonly (readonly [id: bigint, amount: bigint])[]
/** A counter of a budget with a period of its own. A null end is never. */
export type PeriodRef = readonly [scope: Scope, scopeId: string, period: string, endsAtMs: number | null]
/** The spend counters of a call as [scope, scope id] pairs, in the organisation's month `month`. */
export interface Charge {
  readonly orgId: number
  readonly month: string
  readonly monthEndsAtMs: number
  readonly scopes: readonly (readonly [Scope, string])[]
  /** The other periods of budgets that the call counts in. Absent when there are none. */
  readonly periods?: readonly PeriodRef[]
  /** True when the prepaid balance was asked, so that it is debited the cost of the call. Absent when nothing is debited, whatever the cost is. */
  readonly prepaid?: boolean
}

export type JournalRecord<E extends ChargedEvent> =
  /** A call is about to be dialed, or dialed again. */
  | { readonly kind: 'open'; readonly event: E; readonly charge: Charge; readonly counts: Amounts }
  /** The usage of a running call if it ended now. */
  | { readonly kind: 'progress'; readonly event: E; readonly charge: Charge; readonly counts: Amounts }
  /** The call ended. `counts` are the spent units (daily), and `released` leaves the leases. */
  | { readonly kind: 'settle'; readonly event: E; readonly charge: Charge; readonly counts: Amounts; readonly released: Amounts }
  /** An opened call ended without a charge. */
  | { readonly kind: 'close'; readonly eventId: string; readonly released: Amounts }
  /** Idle slices are given back. */
  | { readonly kind: 'return'; readonly released: Amounts }
  /** Rate units were used, out of leases. `over` are tokens beyond them. An amount below zero was added before and not used. */
  | { readonly kind: 'count'; readonly counts: Amounts; readonly over?: Amounts }

type EventRecord<E extends ChargedEvent> = Extract<JournalRecord<E>, { readonly event: E }>

/** Encodes events in bytes. Its owner knows their fields. */
export interface EventCodec<E> {
  /** The fields that are bigints. */
  readonly bigFields: readonly string[]
  /** The most bytes that `write` uses. */
  readonly bytesMax: number
  /** Returns the fields that the calls of a caller on a route have in common, as JSON values. */
  factsOf(event: E): object
  /** Returns true when both events have the same facts. */
  haveSameFacts(a: E, b: E): boolean
  /** Writes the other fields at `at`. Returns the offset after them, or -1 when a value has no place in this encoding. */
  write(event: E, bytes: Buffer, view: DataView, at: number): number
  /** Reads the event whose other fields are at `at`. Throws when a later version has written them. */
  read(bytes: Buffer, at: number, facts: object): E
}

const headerBytes = 8
/** The most bytes of a record. A larger length field means a torn tail. */
const recordMaxBytes = 1 << 20
const factsByte = 1
const kindBytes = { open: 2, progress: 3, settle: 4 } as const
const kindOfByte: ReadonlyMap<number, keyof typeof kindBytes> = new Map([
  [2, 'open'],
  [3, 'progress'],
  [4, 'settle'],
])
const jsonByte = 0x7b
/** Kind, offset of the facts, and the lengths of two lists of amounts. */
const fixedBytes = 11
const amountBytes = 16
const amountsMax = 255
const int64Max = 2n ** 63n - 1n
/** The most facts of a caller that are remembered. A caller with more models at the same time has its facts written again. */
const factsPerCallerMax = 16

interface WrittenFacts<E> {
  readonly of: E
  /** The offset of their record in the journal. */
  readonly offset: number
}

/** Encodes records one after the other into a buffer that is reused. */
export class RecordBuffer<E extends ChargedEvent> {
  readonly #codec: EventCodec<E> | null
  #bytes = Buffer.allocUnsafeSlow(64 * 1024)
  #view = new DataView(this.#bytes.buffer)
  #size = 0
  /** The facts in the current segment. All calls of a caller have the same charge object. */
  #facts = new WeakMap<Charge, WrittenFacts<E>[]>()

  /** Without a codec, all records are JSON. */
  constructor(codec: EventCodec<E> | null) {
    this.#codec = codec
  }

  /** The bytes since the last `clear`. They are valid until the next call. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  /** Adds a record. `base` is the offset of the buffer's first byte in the journal. */
  add(record: JournalRecord<E>, base: number): void {
    if (this.#codec === null || !('event' in record) || !this.#addBytes(record, base, this.#codec)) this.#addText(textOf(record))
  }

  clear(): void {
    this.#size = 0
  }

  /** Forgets the written facts, because a new segment begins or the last bytes did not get into the journal. */
  forgetFacts(): void {
    this.#facts = new WeakMap()
  }

  /** Returns false when a value has no place in this encoding. */
  #addBytes(record: EventRecord<E>, base: number, codec: EventCodec<E>): boolean {
    const { counts } = record
    const released = record.kind === 'settle' ? record.released : nothing
    if (!areSmall(counts) || !areSmall(released)) return false
    const facts = this.#factsOffset(record, base, codec)
    const start = this.#size + headerBytes
    this.#reserve(start + fixedBytes + (counts.length + released.length) * amountBytes + codec.bytesMax)
    this.#bytes[start] = kindBytes[record.kind]
    this.#view.setFloat64(start + 1, facts, true)
    let at = this.#writeAmounts(counts, start + 9)
    if (record.kind === 'settle') at = this.#writeAmounts(released, at)
    const end = codec.write(record.event, this.#bytes, this.#view, at)
    if (end === -1) return false
    this.#frame(start, end)
    return true
  }

  #writeAmounts(amounts: Amounts, at: number): number {
    this.#bytes[at] = amounts.length
    let next = at + 1
    for (const [id, amount] of amounts) {
      this.#view.setBigInt64(next, id, true)
      this.#view.setBigInt64(next + 8, amount, true)
      next += amountBytes
    }
    return next
  }

  /** Returns the offset of the facts of a record. It writes them when they are not in this segment yet. */
  #factsOffset({ event, charge }: EventRecord<E>, base: number, codec: EventCodec<E>): number {
    let known = this.#facts.get(charge)
    if (known === undefined) {
      known = []
      this.#facts.set(charge, known)
    }
    for (let i = 0; i < known.length; i++) {
      const facts = known[i] as WrittenFacts<E>
      if (codec.haveSameFacts(facts.of, event)) return facts.offset
    }
    const offset = base + this.#size
    if (known.length >= factsPerCallerMax) known.shift()
    known.push({ of: event, offset })
    this.#addText(`${String.fromCharCode(factsByte)}${JSON.stringify({ event: codec.factsOf(event), charge })}`)
    return offset
  }

  #addText(text: string): void {
    const start = this.#size + headerBytes
    // UTF-8 needs at most three bytes for a UTF-16 unit. Room for all of them is cheaper than measuring the text first.
    this.#reserve(start + text.length * 3)
    this.#frame(start, start + this.#bytes.write(text, start))
  }

  #frame(start: number, end: number): void {
    this.#view.setUint32(this.#size, end - start, true)
    this.#view.setUint32(this.#size + 4, crc32(this.#bytes.subarray(start, end)), true)
    this.#size = end
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafeSlow(2 * length)
    this.#bytes.copy(larger, 0, 0, this.#size)
    this.#bytes = larger
    this.#view = new DataView(larger.buffer)
  }
}

const nothing: Amounts = []

function areSmall(amounts: Amounts): boolean {
  if (amounts.length > amountsMax) return false
  for (const [, amount] of amounts) if (amount > int64Max || amount < 0n) return false
  return true
}

/** Returns a record as JSON. */
function textOf<E extends ChargedEvent>(record: JournalRecord<E>): string {
  const big = 'event' in record ? Object.entries(record.event).flatMap(([name, value]) => (typeof value === 'bigint' ? [name] : [])) : undefined
  const { kind, ...fields } = record
  return JSON.stringify({ kind, ...fields, big }, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

/** What the records of a segment have in common, as they were read. */
interface Facts {
  readonly event: object
  readonly charge: Charge
}

/** Returns bytes of the journal from an offset on, for facts before the bytes that are decoded. With `isLong` at least a record of any length. */
type ReadBack = (offset: number, isLong: boolean) => Buffer | null

/** The most facts that a reader remembers. */
const factsMax = 4096

/** Decodes the records of one process's journal. It remembers facts, so that records with the same facts share their charge object. */
export class RecordDecoder<E extends ChargedEvent> {
  readonly #codec: EventCodec<E> | null
  readonly #readBack: ReadBack
  readonly #facts = new Map<number, Facts>()

  constructor(codec: EventCodec<E> | null, readBack: ReadBack) {
    this.#codec = codec
    this.#readBack = readBack
  }

  /**
   * Decodes the records in `bytes`, each with the offset of its end. It stops at a torn tail or at bytes that are not a record. With `skipsDrafts`,
   * `open` and `progress` records come as records without effect. Throws when a later version has written a record.
   */
  *decode(bytes: Buffer, baseOffset: number, skipsDrafts = false): Generator<{ record: JournalRecord<E>; endOffset: number }> {
    for (let at = 0; ; ) {
      const payload = payloadAt(bytes, at)
      if (payload === null) return
      at += headerBytes + payload.length
      if (payload[0] === factsByte) continue
      const record = skipsDrafts && isDraft(payload) ? withoutEffect : this.#recordOf(payload, bytes, baseOffset)
      yield { record, endOffset: baseOffset + at }
    }
  }

  #recordOf(payload: Buffer, bytes: Buffer, baseOffset: number): JournalRecord<E> {
    if (payload[0] === jsonByte) return parseRecord<E>(payload.toString())
    const kind = kindOfByte.get(payload[0] ?? 0)
    if (kind === undefined || this.#codec === null) throw new SyntaxError(`this version cannot read a journal record of type ${payload[0]}`)
    const { event: facts, charge } = this.#factsAt(payload.readDoubleLE(1), bytes, baseOffset)
    const counts = amountsAt(payload, 9)
    const afterCounts = 10 + counts.length * amountBytes
    if (kind !== 'settle') return { kind, event: this.#codec.read(payload, afterCounts, facts), charge, counts }
    const released = amountsAt(payload, afterCounts)
    return { kind, event: this.#codec.read(payload, afterCounts + 1 + released.length * amountBytes, facts), charge, counts, released }
  }

  #factsAt(offset: number, bytes: Buffer, baseOffset: number): Facts {
    const known = this.#facts.get(offset)
    if (known !== undefined) return known
    const payload = offset >= baseOffset ? payloadAt(bytes, offset - baseOffset) : (this.#payloadBack(offset, false) ?? this.#payloadBack(offset, true))
    if (payload?.[0] !== factsByte) throw new SyntaxError('the facts of a journal record are missing')
    const facts = JSON.parse(payload.toString('utf8', 1)) as Facts
    if (this.#facts.size >= factsMax) this.#facts.clear()
    this.#facts.set(offset, facts)
    return facts
  }

  #payloadBack(offset: number, isLong: boolean): Buffer | null {
    const bytes = this.#readBack(offset, isLong)
    return bytes === null ? null : payloadAt(bytes, 0)
  }
}

/** Stands for a record that only an adopter needs. */
const withoutEffect: Extract<JournalRecord<ChargedEvent>, { readonly kind: 'return' }> = { kind: 'return', released: [] }

/**
 * Returns the payload of the record at an offset. Null when there is no whole record. No record is empty: a file system can leave zero bytes after
 * a power cut, and the checksum of nothing is zero.
 */
function payloadAt(bytes: Buffer, at: number): Buffer | null {
  if (at + headerBytes > bytes.length) return null
  const size = bytes.readUInt32LE(at)
  const end = at + headerBytes + size
  if (size === 0 || size > recordMaxBytes || end > bytes.length) return null
  const payload = bytes.subarray(at + headerBytes, end)
  return crc32(payload) === bytes.readUInt32LE(at + 4) ? payload : null
}

const [draftText, progressText] = [Buffer.from('{"kind":"open"'), Buffer.from('{"kind":"progress"')]

function isDraft(payload: Buffer): boolean {
  const first = payload[0]
  if (first !== jsonByte) return first === kindBytes.open || first === kindBytes.progress
  return payload.subarray(0, draftText.length).equals(draftText) || payload.subarray(0, progressText.length).equals(progressText)
}

function amountsAt(payload: Buffer, at: number): Amounts {
  const count = payload.readUInt8(at)
  const amounts: (readonly [bigint, bigint])[] = []
  for (let i = 0, next = at + 1; i < count; i++, next += amountBytes) amounts.push([payload.readBigInt64LE(next), payload.readBigInt64LE(next + 8)])
  return amounts
}

function parseRecord<E extends ChargedEvent>(text: string): JournalRecord<E> {
  const parsed = JSON.parse(text) as Record<string, unknown> & { event?: Record<string, unknown>; big?: string[] }
  if (parsed.event !== undefined) for (const name of parsed.big ?? []) parsed.event[name] = BigInt(String(parsed.event[name]))
  delete parsed.big
  for (const name of ['counts', 'released', 'over']) {
    const amounts = parsed[name]
    if (Array.isArray(amounts)) parsed[name] = amounts.map(([id, amount]: [string, string]) => [BigInt(id), BigInt(amount)])
  }
  return parsed as unknown as JournalRecord<E>
}
