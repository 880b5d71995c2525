/** The few disk operations of the journal that can fail. They are in one place so that tests can replace them. Decision 0201 gives the reasons. */
import { closeSync, fdatasync, fsync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export interface JournalDisk {
  /** The number of bytes after which a new segment begins. */
  readonly segmentBytes: number
  /** Opens a file for appending, and makes it if it does not exist. Throws the system's error. */
  open(path: string): number
  /** Appends bytes. Returns the number of bytes that are now in the page cache. Throws the system's error. */
  append(fd: number, bytes: Uint8Array): number
  /** Resolves when the file and its name in the folder are on the disk, beyond the page cache. */
  sync(fd: number, folder: string): Promise<void>
}

/** The disk of this machine. */
export const machineDisk: JournalDisk = {
  segmentBytes: 16 * 1024 * 1024,
  open: path => openSync(path, 'a', 0o600),
  append: (fd, bytes) => writeSync(fd, bytes, 0, bytes.length),
  async sync(fd, folder) {
    await promisify(fdatasync)(fd)
    // Windows cannot sync folders.
    if (process.platform === 'win32') return
    const handle = openSync(folder, 'r')
    try {
      await promisify(fsync)(handle)
    } finally {
      closeSync(handle)
    }
  },
}
