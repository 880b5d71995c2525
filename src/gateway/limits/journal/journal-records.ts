/**
 * The records of the usage journal and their bytes: 4 bytes length, 4 bytes crc32 of the payload, JSON payload.
 *
 * Fields are those of the event type, which is content-free; a bigint is written as text and named in `big`.
 */
import { crc32 } from 'node:zlib'
import type { ChargedEvent } from '../engine/admission.ts'
import type { Scope } from '../engine/counters/counter-state.ts'

/** [counter id, amount] pairs; JSON-safe. */
export type Amounts = readonly (readonly [id: string, amount: string])[]
/** The spend counters of a call: [scope, scope id], in the month `month` of the organisation. */
export interface Charge {
  readonly orgId: number
  readonly month: string
  readonly monthEndsAtMs: number
  readonly scopes: readonly (readonly [Scope, string])[]
  /** The prepaid balance was asked: what the call cost is debited. Absent: nothing is, whatever the call cost. */
  readonly prepaid?: boolean
}

export type JournalRecord<E extends ChargedEvent> =
  /** A call is about to be dialed, or dials again. */
  | { readonly kind: 'open'; readonly event: E; readonly charge: Charge; readonly counts: Amounts }
  /** What a running call would have cost if it ended now. */
  | { readonly kind: 'progress'; readonly event: E; readonly charge: Charge; readonly counts: Amounts }
  /** The call ended: `counts` are spent units (daily), `released` leaves the leases. */
  | { readonly kind: 'settle'; readonly event: E; readonly charge: Charge; readonly counts: Amounts; readonly released: Amounts }
  /** An opened call ended without a charge. */
  | { readonly kind: 'close'; readonly eventId: string; readonly released: Amounts }
  /** Idle slices go back. */
  | { readonly kind: 'return'; readonly released: Amounts }
  /** Rate units that were used. */
  | { readonly kind: 'count'; readonly counts: Amounts }

/** How an event becomes text. `bigFields` is the JSON list of its fields that are bigints, which `text` writes as text. */
export interface EventText<E> {
  readonly bigFields: string
  text(event: E): string
}

const headerBytes = 8
/** No record is longer; a longer length field is a torn tail. */
const recordMaxBytes = 1 << 20

/** Records as bytes, one behind the other, in a buffer that is used again and again. */
export class RecordBuffer<E extends ChargedEvent> {
  readonly #eventText: EventText<E> | null
  #bytes = Buffer.allocUnsafe(64 * 1024)
  #size = 0

  /** Without an `eventText` any event is written, field by field. */
  constructor(eventText: EventText<E> | null) {
    this.#eventText = eventText
  }

  /** What was added since the last `clear`; lent until the next call. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  /** Adds a record and returns how many bytes it has. */
  add(record: JournalRecord<E>): number {
    const text = 'event' in record ? textOf(record, this.#eventText) : JSON.stringify(record)
    const start = this.#size + headerBytes
    // UTF-8 needs at most three bytes for a UTF-16 unit; room for that is cheaper than measuring the text first.
    if (start + text.length * 3 > this.#bytes.length) this.#bytes = Buffer.concat([this.bytes], 2 * (start + text.length * 3))
    const size = this.#bytes.write(text, start)
    this.#bytes.writeUInt32LE(size, this.#size)
    this.#bytes.writeUInt32LE(crc32(this.#bytes.subarray(start, start + size)), this.#size + 4)
    this.#size = start + size
    return headerBytes + size
  }

  clear(): void {
    this.#size = 0
  }
}

/** A caller's charge is the same object for every call, so its text is made once. */
const chargeTexts = new WeakMap<Charge, string>()

function textOf<E extends ChargedEvent>(record: Extract<JournalRecord<E>, { readonly event: E }>, eventText: EventText<E> | null): string {
  const event = eventText === null ? anyEventText(record.event) : `${eventText.text(record.event)},"big":${eventText.bigFields}`
  let charge = chargeTexts.get(record.charge)
  if (charge === undefined) {
    charge = JSON.stringify(record.charge)
    chargeTexts.set(record.charge, charge)
  }
  const released = record.kind === 'settle' ? `,"released":${amountsText(record.released)}` : ''
  return `{"kind":"${record.kind}","event":${event},"charge":${charge},"counts":${amountsText(record.counts)}${released}}`
}

/** The event and, behind it, which of its fields are bigints. */
function anyEventText(event: object): string {
  let fields = ''
  let big = ''
  for (const [name, value] of Object.entries(event) as [string, unknown][]) {
    if (value === undefined) continue
    if (fields !== '') fields += ','
    if (typeof value === 'bigint') {
      fields += `"${name}":"${value}"`
      big += big === '' ? `"${name}"` : `,"${name}"`
    } else fields += `"${name}":${JSON.stringify(value)}`
  }
  return `{${fields}},"big":[${big}]`
}

/** Both parts are decimal digits, so nothing needs escaping. */
function amountsText(amounts: Amounts): string {
  let text = ''
  for (const [id, amount] of amounts) text += `${text === '' ? '' : ','}["${id}","${amount}"]`
  return `[${text}]`
}

/** The records in `bytes` with the offset at which each one ends; stops at a torn tail or at bytes that are no record. */
export function* decodeRecords<E extends ChargedEvent>(bytes: Buffer, baseOffset: number): Generator<{ record: JournalRecord<E>; endOffset: number }> {
  let at = 0
  while (at + headerBytes <= bytes.length) {
    const size = bytes.readUInt32LE(at)
    const end = at + headerBytes + size
    if (size > recordMaxBytes || end > bytes.length) return
    const payload = bytes.subarray(at + headerBytes, end)
    if (crc32(payload) !== bytes.readUInt32LE(at + 4)) return
    yield { record: parseRecord<E>(payload.toString()), endOffset: baseOffset + end }
    at = end
  }
}

function parseRecord<E extends ChargedEvent>(text: string): JournalRecord<E> {
  const parsed = JSON.parse(text) as Record<string, unknown> & { event?: Record<string, unknown>; big?: string[] }
  if (parsed.event !== undefined) for (const name of parsed.big ?? []) parsed.event[name] = BigInt(String(parsed.event[name]))
  delete parsed.big
  return parsed as unknown as JournalRecord<E>
}
