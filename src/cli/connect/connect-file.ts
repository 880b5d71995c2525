import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, readlinkSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { cannotChange } from '../../connect/connect-edits.ts'
import { ConnectError } from '../../connect/connect-error.ts'

/** A file as it was read. */
export interface ReadFile {
  /** The path of the file itself, after all links. */
  readonly path: string
  /** The text. It is empty for a missing file. */
  readonly text: string
  readonly isThere: boolean
}

/** Reads a text file. A missing file is empty. Throws ConnectError when it cannot be read or is not UTF-8. */
export function readTextFile(given: string): ReadFile {
  const path = behindLinks(given)
  try {
    const bytes = readFileSync(path)
    return { path, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), isThere: true }
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return { path, text: '', isThere: false }
    throw cannotChange(code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'it is no UTF-8 text' : `it cannot be read (${code})`)
  }
}

/**
 * Writes `text` in place of the file that was read, completely or not at all. The new file has the mode and owner of the old one. When the
 * file has changed since it was read, it is not touched, and the result is false. A file that did not exist is readable only for its owner, unless
 * `isShared` is true. Throws ConnectError.
 */
export function replaceTextFile(read: ReadFile, text: string, isShared: boolean, unique: string): boolean {
  const beside = `${read.path}.${unique}.new`
  try {
    mkdirSync(dirname(read.path), { recursive: true })
    const before = read.isThere ? statSync(read.path) : null
    // A read-only file could still be replaced, because that depends only on its folder. But the owner probably does not want it to change.
    if (before !== null && (before.mode & 0o222) === 0) throw cannotChange('it is read-only')
    writeFileSync(beside, text, { mode: before === null && isShared ? 0o644 : 0o600, flag: 'wx' })
    if (before !== null) keepOwnerAndMode(beside, before)
    const now = readTextFile(read.path)
    if (now.text !== read.text || now.isThere !== read.isThere) return false
    renameSync(beside, read.path)
    return true
  } catch (error) {
    if (error instanceof ConnectError) throw error
    throw cannotChange(`it cannot be written (${codeOf(error)})`)
  } finally {
    rmSync(beside, { force: true })
  }
}

function keepOwnerAndMode(path: string, { mode, uid, gid }: { mode: number; uid: number; gid: number }): void {
  try {
    chownSync(path, uid, gid)
  } catch {
    // Only the superuser may change the owner of a file. Every other user can replace only files that they already own, or may not write in the
    // folder.
  }
  chmodSync(path, mode & 0o777)
}

/** Returns the file to which a link points, even if the file does not exist yet. */
function behindLinks(path: string): string {
  const hopsMax = 40
  let at = path
  for (let hop = 0; hop < hopsMax; hop++) {
    if (existsSync(at)) return realpathSync(at)
    try {
      at = resolve(dirname(at), readlinkSync(at))
    } catch {
      return at
    }
  }
  throw cannotChange('its links lead in a circle')
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
