/**
 * The usage journal of this process: an append-only file under DATA_DIR/journal. It is written with writeSync, so that every acknowledged record
 * of a killed process is in the page cache.
 *
 * The files are segments `<process>.<offset of their first byte>`. Offsets count over all segments of a process.
 */
import { closeSync, fstatSync, ftruncateSync, mkdirSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { ChargedEvent } from '../engine/admission.ts'
import { type JournalDisk, machineDisk } from './journal-disk.ts'
import { type EventCodec, type JournalRecord, RecordBuffer } from './journal-records.ts'

/** The record could not be written because the disk is full or gone. No part of it is in the file. */
export class JournalWriteError extends Error {
  override readonly name = 'JournalWriteError'
}

/** A file of a journal, with the offset of its first byte. */
export interface Segment {
  readonly path: string
  readonly start: number
}

/** Returns the journal folder of a data directory, and makes it if it does not exist. */
export function journalFolder(dataDir: string): string {
  const folder = join(dataDir, 'journal')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Returns the segments of a process in their order. */
export function segmentsOf(folder: string, processId: bigint): Segment[] {
  const prefix = `${processId}.`
  return readdirSync(folder)
    .filter(name => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map(name => ({ path: join(folder, name), start: Number(name.slice(prefix.length)) }))
    .sort((a, b) => a.start - b.start)
}

/** Returns the ids of the processes with a journal in the folder, in ascending order. */
export function journalsIn(folder: string): bigint[] {
  const ids = new Set<bigint>()
  for (const name of readdirSync(folder)) {
    const match = /^(\d+)\.\d+$/.exec(name)
    if (match?.[1] !== undefined) ids.add(BigInt(match[1]))
  }
  return [...ids].sort((a, b) => (a < b ? -1 : 1))
}

/** Deletes the journal of a closed process. */
export function deleteJournal(folder: string, processId: bigint): void {
  for (const segment of segmentsOf(folder, processId)) unlinkSync(segment.path)
}

/** Returns the wall-clock time of the last write to a process's journal, in Unix milliseconds. */
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
  /** True when the file ends with bytes of an incomplete record that could not be cut off. */
  #isTorn = false
  /** The offset up to which everything is on the disk, beyond the page cache. */
  #syncedTo = 0
  #syncing: Promise<void> | null = null

  constructor(folder: string, processId: bigint, codec: EventCodec<E> | null = null, disk: JournalDisk = machineDisk) {
    this.#buffer = new RecordBuffer(codec)
    this.#folder = folder
    this.#processId = processId
    this.#disk = disk
    this.#fd = this.#open(0)
  }

  /** The offset of the last record's end. */
  get endOffset(): number {
    return this.#end
  }

  /** True when the next record should go to a new segment. The owner then calls `rotate` and writes the running calls again. */
  get isSegmentFull(): boolean {
    return this.#end - this.#start >= this.#disk.segmentBytes
  }

  /**
   * Writes records with one system call. They are in the page cache on return. Throws `JournalWriteError`; the file then contains none of them.
   */
  append(records: readonly JournalRecord<E>[]): void {
    this.#buffer.clear()
    for (const record of records) this.#buffer.add(record, this.#end)
    const { bytes } = this.#buffer
    try {
      if (this.#isTorn) this.#cutTail()
      const written = this.#disk.append(this.#fd, bytes)
      if (written !== bytes.length) throw new Error(`wrote ${written} of ${bytes.length} bytes`)
    } catch (cause) {
      this.#isTorn = true
      this.#buffer.forgetFacts()
      this.#tryCutTail()
      throw new JournalWriteError('the usage journal could not be written', { cause })
    }
    this.#end += bytes.length
  }

  /** Begins a new segment. Returns false when none can be made because the disk is full; the old segment is then used further. */
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
    // Earlier segments are deleted one by one, so each has all facts of its records.
    this.#buffer.forgetFacts()
    if (this.#syncedTo === 0) closeSync(old)
    else void this.#synced(old).finally(() => closeSync(old))
    return true
  }

  /** Writes all records from the page cache to the disk. Never rejects: a failing disk shows in `append`. */
  async sync(): Promise<void> {
    if (this.#syncing !== null || this.#end === this.#syncedTo) return this.#syncing ?? undefined
    const target = this.#end
    this.#syncing = this.#synced(this.#fd)
    await this.#syncing
    this.#syncing = null
    this.#syncedTo = target
  }

  /** Deletes segments that are entirely in the database and older than `keepMs`. */
  expire(flushedTo: number, keepMs: number, nowMs: number): void {
    const segments = segmentsOf(this.#folder, this.#processId)
    for (const [index, segment] of segments.entries()) {
      const next = segments[index + 1]
      if (next !== undefined && next.start <= flushedTo && statSync(segment.path).mtimeMs < nowMs - keepMs) unlinkSync(segment.path)
    }
  }

  close(): void {
    const fd = this.#fd
    // A descriptor that is closed during a sync may already belong to another file.
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
      // The cut is tried again before the next record, because a reader would not find a record after torn bytes.
    }
  }

  #cutTail(): void {
    if (fstatSync(this.#fd).size > this.#end - this.#start) ftruncateSync(this.#fd, this.#end - this.#start)
    this.#isTorn = false
  }
}
