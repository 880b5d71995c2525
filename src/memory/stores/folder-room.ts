/**
 * Keeps a part of the disk free of memory objects. Small objects and deep folders take more of the disk than their bytes, which the quotas count. The
 * database and the usage journal need the rest. Decision 0562 gives the reasons.
 */
import { statfs } from 'node:fs/promises'
import type { Clock } from '../../platform/clock.ts'
import { ObjectStoreError } from './object-store.ts'

/** What a file system has. `files` is 0 where the number of files has no bound. */
export interface DiskSpace {
  readonly bytes: number
  readonly freeBytes: number
  readonly files: number
  readonly freeFiles: number
}

/** Bytes and files that stay free, but at most a twentieth of the disk. The project chose these numbers. */
const reservedBytes = 512 * 1024 * 1024
const reservedFiles = 20_000
const reservedPart = 1 / 20
/** How long an answer of the file system is used. At a thousand objects a second, this is far less than the reserve. */
const freshMs = 1000

/** Returns the space of the disk that contains a folder. */
export async function diskSpaceOf(folder: string): Promise<DiskSpace> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(folder)
  return { bytes: blocks * bsize, freeBytes: bavail * bsize, files, freeFiles: ffree }
}

/** Refuses writes when the disk is nearly full. */
export class FolderRoom {
  readonly #clock: Clock
  readonly #space: () => Promise<DiskSpace>
  #askedAtMs = Number.NEGATIVE_INFINITY
  #isFull = false

  constructor(clock: Clock, space: () => Promise<DiskSpace>) {
    this.#clock = clock
    this.#space = space
  }

  /** Throws `ObjectStoreError` of the kind `full` when the reserve of the disk is used. Errors of the file system pass through. */
  async check(): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#askedAtMs >= freshMs) {
      this.#askedAtMs = nowMs
      this.#isFull = isNearlyFull(await this.#space())
    }
    if (this.#isFull) throw new ObjectStoreError('full', 'the disk of the memory store is nearly full')
  }
}

function isNearlyFull({ bytes, freeBytes, files, freeFiles }: DiskSpace): boolean {
  return freeBytes < Math.min(reservedBytes, bytes * reservedPart) || (files > 0 && freeFiles < Math.min(reservedFiles, files * reservedPart))
}
