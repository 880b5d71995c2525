/** How the journal reaches the disk: the few calls that can fail, in one place that can be replaced. Decision 0201 says why. */
import { closeSync, fdatasync, fsync, openSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'

export interface JournalDisk {
  /** A new segment begins after so many bytes. */
  readonly segmentBytes: number
  /** Opens a file for appending, made when it is not there. Throws what the system says. */
  open(path: string): number
  /** Appends; how many bytes were taken, and they are in the page cache. Throws what the system says. */
  append(fd: number, bytes: Uint8Array): number
  /** Resolves when the file and its name in the folder are on the disk itself. */
  sync(fd: number, folder: string): Promise<void>
}

/** The disk of this machine. */
export const machineDisk: JournalDisk = {
  segmentBytes: 16 * 1024 * 1024,
  open: path => openSync(path, 'a', 0o600),
  append: (fd, bytes) => writeSync(fd, bytes, 0, bytes.length),
  async sync(fd, folder) {
    await promisify(fdatasync)(fd)
    // Windows knows no sync of folders.
    if (process.platform === 'win32') return
    const handle = openSync(folder, 'r')
    try {
      await promisify(fsync)(handle)
    } finally {
      closeSync(handle)
    }
  },
}
