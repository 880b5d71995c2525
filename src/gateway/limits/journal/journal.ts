/**
 * The usage journal of this process: an append-only file under DATA_DIR/journal, written with writeSync, so that a killed process
 * leaves every record it has acknowledged in the page cache.
 *
 * Files are segments `<process>.<offset of their first byte>`; offsets count over all segments of a process.
 */
import { closeSync, fstatSync, ftruncateSync, mkdirSync, readdirSync, readFileSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ChargedEvent } from '../engine/admission.ts'
import { type JournalDisk, machineDisk } from './journal-disk.ts'
import { decodeRecords, type EventText, type JournalRecord, RecordBuffer } from './journal-records.ts'

/** The record could not be written: the disk is full or gone. Nothing of it is in the file. */
export class JournalWriteError extends Error {
  override readonly name = 'JournalWriteError'
}

/** A record and the offset behind it. */
export interface Entry<E extends ChargedEvent> {
  readonly record: JournalRecord<E>
  readonly endOffset: number
}

interface Segment {
  readonly path: string
  readonly start: number
}

/** The journal folder of a data directory, made when it is not there. */
export function journalFolder(dataDir: string): string {
  const folder = join(dataDir, 'journal')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Segments of a process in order. */
export function segmentsOf(folder: string, processId: bigint): Segment[] {
  const prefix = `${processId}.`
  return readdirSync(folder)
    .filter(name => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map(name => ({ path: join(folder, name), start: Number(name.slice(prefix.length)) }))
    .sort((a, b) => a.start - b.start)
}

/** Ids of processes that have a journal in the folder. */
export function journalsIn(folder: string): bigint[] {
  const ids = new Set<bigint>()
  for (const name of readdirSync(folder)) {
    const match = /^(\d+)\.\d+$/.exec(name)
    if (match?.[1] !== undefined) ids.add(BigInt(match[1]))
  }
  return [...ids].sort((a, b) => (a < b ? -1 : 1))
}

/** Every whole record of a process that ends after `fromOffset`; a torn tail ends its segment. */
export function* readJournal<E extends ChargedEvent>(folder: string, processId: bigint, fromOffset = 0): Generator<Entry<E>> {
  const segments = segmentsOf(folder, processId)
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1]
    if (next !== undefined && next.start <= fromOffset) continue
    for (const entry of decodeRecords<E>(readFileSync(segment.path), segment.start)) if (entry.endOffset > fromOffset) yield entry
  }
}

/** Deletes the journal of a process that is closed. */
export function deleteJournal(folder: string, processId: bigint): void {
  for (const segment of segmentsOf(folder, processId)) unlinkSync(segment.path)
}

/** Wall-clock ms of the last write to a process's journal. */
export function lastWriteMs(folder: string, processId: bigint): number {
  return Math.max(0, ...segmentsOf(folder, processId).map(segment => statSync(segment.path).mtimeMs))
}

/** The journal that this process writes. */
export class Journal<E extends ChargedEvent> {
  readonly #folder: string
  readonly #processId: bigint
  readonly #disk: JournalDisk
  readonly #buffer: RecordBuffer<E>
  #fd: number
  #start = 0
  #end = 0
  /** After the last record there are bytes of one that was not written whole, which could not be cut off. */
  #isTorn = false
  /** Offset up to which the disk itself has everything. */
  #syncedTo = 0
  #syncing: Promise<void> | null = null

  constructor(folder: string, processId: bigint, eventText: EventText<E> | null = null, disk: JournalDisk = machineDisk) {
    this.#buffer = new RecordBuffer(eventText)
    this.#folder = folder
    this.#processId = processId
    this.#disk = disk
    this.#fd = this.#open(0)
  }

  /** Offset behind the last record. */
  get endOffset(): number {
    return this.#end
  }

  /** True when the next record should go to a new segment; the owner calls `rotate` and writes the running calls again. */
  get isSegmentFull(): boolean {
    return this.#end - this.#start >= this.#disk.segmentBytes
  }

  /** Writes records with one system call and returns the offset behind each. They are in the page cache on return. Throws JournalWriteError: none of them is in the file then. */
  append(records: readonly JournalRecord<E>[]): number[] {
    this.#buffer.clear()
    const endOffsets: number[] = []
    let end = this.#end
    for (const record of records) {
      end += this.#buffer.add(record)
      endOffsets.push(end)
    }
    const { bytes } = this.#buffer
    try {
      if (this.#isTorn) this.#cutTail()
      const written = this.#disk.append(this.#fd, bytes)
      if (written !== bytes.length) throw new Error(`wrote ${written} of ${bytes.length} bytes`)
    } catch (cause) {
      this.#isTorn = true
      this.#tryCutTail()
      throw new JournalWriteError('the usage journal could not be written', { cause })
    }
    this.#end = end
    return endOffsets
  }

  /** Begins a new segment. Where none can be made, because the disk is full, the old one goes on and false is returned. */
  rotate(): boolean {
    let fd: number
    try {
      fd = this.#open(this.#end)
    } catch {
      return false
    }
    const old = this.#fd
    this.#fd = fd
    this.#start = this.#end
    if (this.#syncedTo === 0) closeSync(old)
    else void this.#synced(old).finally(() => closeSync(old))
    return true
  }

  /** Brings what was written so far to the disk itself, beyond the page cache. Never rejects: a disk that fails shows in `append`. */
  async sync(): Promise<void> {
    if (this.#syncing !== null || this.#end === this.#syncedTo) return this.#syncing ?? undefined
    const target = this.#end
    this.#syncing = this.#synced(this.#fd)
    await this.#syncing
    this.#syncing = null
    this.#syncedTo = target
  }

  /** Deletes segments that are wholly in the database and older than `keepMs`. */
  expire(flushedTo: number, keepMs: number, nowMs: number): void {
    const segments = segmentsOf(this.#folder, this.#processId)
    for (const [index, segment] of segments.entries()) {
      const next = segments[index + 1]
      if (next !== undefined && next.start <= flushedTo && statSync(segment.path).mtimeMs < nowMs - keepMs) unlinkSync(segment.path)
    }
  }

  close(): void {
    const fd = this.#fd
    // A descriptor that is closed under a running sync may already be another file.
    if (this.#syncing === null) closeSync(fd)
    else void this.#syncing.then(() => closeSync(fd))
  }

  #open(offset: number): number {
    return this.#disk.open(join(this.#folder, `${this.#processId}.${offset}`))
  }

  #synced(fd: number): Promise<void> {
    return this.#disk.sync(fd, this.#folder).catch(() => undefined)
  }

  #tryCutTail(): void {
    try {
      this.#cutTail()
    } catch {
      // Tried again before the next record: behind torn bytes no reader would find it.
    }
  }

  #cutTail(): void {
    if (fstatSync(this.#fd).size > this.#end - this.#start) ftruncateSync(this.#fd, this.#end - this.#start)
    this.#isTorn = false
  }
}
