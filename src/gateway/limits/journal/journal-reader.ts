/** Reads journals: that of a dead process as a whole, and that of this process range by range. */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import type { ChargedEvent } from '../engine/admission.ts'
import { type Segment, segmentsOf } from './journal.ts'
import { type EventCodec, type JournalRecord, RecordDecoder } from './journal-records.ts'

/** The most bytes that are read together. It is more than the longest record. */
const portionBytes = 4 * 1024 * 1024
/** The bytes that are read for facts. They are read again when this is too little. */
const factsBytes = 4096
const factsMaxBytes = 2 * 1024 * 1024

/** A record and the offset of its end. */
export interface Entry<E extends ChargedEvent> {
  readonly record: JournalRecord<E>
  readonly endOffset: number
}

/**
 * Yields every whole record of a process that ends after `fromOffset`. A torn tail ends its segment. Without a codec, only records in JSON can be
 * read. Throws for records of a later version.
 */
export function* readJournal<E extends ChargedEvent>(
  folder: string,
  processId: bigint,
  fromOffset = 0,
  codec: EventCodec<E> | null = null,
): Generator<Entry<E>> {
  const segments = segmentsOf(folder, processId)
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1]
    if (next !== undefined && next.start <= fromOffset) continue
    // All facts of a segment are in it.
    const decoder = new RecordDecoder<E>(codec, () => null)
    for (const entry of decoder.decode(readFileSync(segment.path), segment.start)) if (entry.endOffset > fromOffset) yield entry
  }
}

/** The number of records after which `isReadable` lets other work run. */
const turnRecords = 5000

/** Returns true when this version can read the whole journal of a process. The journal may have an hour of calls, so other work runs in between. */
export async function isReadable<E extends ChargedEvent>(folder: string, processId: bigint, codec: EventCodec<E> | null): Promise<boolean> {
  let read = 0
  try {
    for (const _ of readJournal<E>(folder, processId, 0, codec)) if (++read % turnRecords === 0) await new Promise(resolve => setImmediate(resolve))
    return true
  } catch {
    return false
  }
}

/** Reads ranges of the journals in a folder. */
export class RangeReader<E extends ChargedEvent> {
  readonly #folder: string
  readonly #codec: EventCodec<E> | null
  #processId: bigint | null = null
  #segments: readonly Segment[] = []
  #decoder: RecordDecoder<E>

  constructor(folder: string, codec: EventCodec<E> | null) {
    this.#folder = folder
    this.#codec = codec
    this.#decoder = this.#newDecoder()
  }

  /**
   * Returns the first records between two ends of records, at most `recordsMax` of them. Both offsets must be known from the writer, so that no torn
   * bytes are in between. Segments that were deleted are skipped. Drafts of calls (`open`, `progress`) come as records without effect. Throws the
   * system's error.
   */
  read(processId: bigint, from: number, to: number, recordsMax: number): Entry<E>[] {
    // Offsets of another process name other facts.
    if (processId !== this.#processId) this.#decoder = this.#newDecoder()
    this.#processId = processId
    this.#segments = segmentsOf(this.#folder, processId)
    const entries: Entry<E>[] = []
    let left = portionBytes
    for (const [index, { path, start }] of this.#segments.entries()) {
      const at = Math.max(from, start)
      const end = Math.min(to, this.#segments[index + 1]?.start ?? to)
      if (at >= end) continue
      const bytes = readPart(path, at - start, Math.min(end - at, left))
      for (const entry of this.#decoder.decode(bytes, at, true)) if (entries.push(entry) >= recordsMax) return entries
      left -= bytes.length
      if (left <= 0) break
    }
    return entries
  }

  #newDecoder(): RecordDecoder<E> {
    return new RecordDecoder<E>(this.#codec, (offset, isLong) => {
      const segment = this.#segments.findLast(({ start }) => start <= offset)
      return segment === undefined ? null : readPart(segment.path, offset - segment.start, isLong ? factsMaxBytes : factsBytes)
    })
  }
}

function readPart(path: string, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  const fd = openSync(path, 'r')
  try {
    return bytes.subarray(0, readSync(fd, bytes, 0, length, position))
  } finally {
    closeSync(fd)
  }
}
