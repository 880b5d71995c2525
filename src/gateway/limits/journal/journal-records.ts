/**
 * The records of the usage journal and their encoding: 4 bytes length, 4 bytes crc32 of the payload, then the payload in JSON.
 *
 * The fields of an event are those of its type, which has no content of calls. A bigint is written as text, and `big` names its field.
 */
import { crc32 } from 'node:zlib'
import type { ChargedEvent } from '../engine/admission.ts'
import type { Scope } from '../engine/counters/counter-state.ts'

/** Pairs of [counter id, amount]. They can be written as JSON. */
export type Amounts = readonly (readonly [id: string, amount: string])[]
/** The spend counters of a call as [scope, scope id] pairs, in the organisation's month `month`. */
export interface Charge {
  readonly orgId: number
  readonly month: string
  readonly monthEndsAtMs: number
  readonly scopes: readonly (readonly [Scope, string])[]
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
  /** Rate units were used. */
  | { readonly kind: 'count'; readonly counts: Amounts }

/** Writes an event as text. `bigFields` is the JSON list of the fields that are bigints, which `text` writes as text. */
export interface EventText<E> {
  readonly bigFields: string
  text(event: E): string
}

const headerBytes = 8
/** The most bytes of a record. A larger length field means a torn tail. */
const recordMaxBytes = 1 << 20

/** Encodes records one after the other into a buffer that is reused. */
export class RecordBuffer<E extends ChargedEvent> {
  readonly #eventText: EventText<E> | null
  #bytes = Buffer.allocUnsafe(64 * 1024)
  #size = 0

  /** Without an `eventText`, events of any type are written field by field. */
  constructor(eventText: EventText<E> | null) {
    this.#eventText = eventText
  }

  /** The bytes since the last `clear`. They are valid until the next call. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  /** Adds a record and returns its length in bytes. */
  add(record: JournalRecord<E>): number {
    const text = 'event' in record ? textOf(record, this.#eventText) : JSON.stringify(record)
    const start = this.#size + headerBytes
    // UTF-8 needs at most three bytes for a UTF-16 unit. Room for all of them is cheaper than measuring the text first.
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

/** All calls of a caller share one charge object, so its text is made once. */
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

/** Returns the event as JSON, followed by the names of its bigint fields. */
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

/** Decodes the records in `bytes`, each with the offset of its end. It stops at a torn tail or at bytes that are not a record. */
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
