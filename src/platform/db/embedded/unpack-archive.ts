import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'

const unzip = promisify(gunzip)

/** A tar archive consists of blocks of this size, and each file begins with one block about it. */
const blockBytes = 512
/** The unpacked archive has at most this many bytes. An empty database has 40 MB. */
const archiveMaxBytes = 4 * 1024 ** 3 - 1
const typeFolder = '5'
const typesOfFile = new Set(['', '0'])

/** Returns whether these are the bytes of a gzip file. */
const isZipped = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b

/**
 * Writes the files of a tar archive into a folder. The archive may be compressed with gzip. Only this user can read the files. Throws when the archive is
 * incomplete, and when it has a file for a place outside of the folder.
 */
export async function unpackArchive(archive: Uint8Array, folder: string): Promise<void> {
  const bytes = isZipped(archive) ? await unzip(archive, { maxOutputLength: archiveMaxBytes }) : Buffer.from(archive.buffer, archive.byteOffset, archive.length)
  const made = new Set<string>()
  const makeFolder = (path: string): void => {
    if (made.has(path)) return
    mkdirSync(path, { recursive: true, mode: 0o700 })
    made.add(path)
  }
  for (let at = 0; ; ) {
    const head = bytes.subarray(at, at + blockBytes)
    if (head.length !== blockBytes) throw damaged()
    // A complete archive ends with empty blocks.
    if (head[0] === 0) return
    const [begin, prefix, type] = [textAt(head, 0, 100), textAt(head, 345, 155), textAt(head, 156, 1)]
    const size = Number.parseInt(textAt(head, 124, 12).trim(), 8)
    const path = join(folder, prefix, begin)
    const content = bytes.subarray(at + blockBytes, at + blockBytes + size)
    if (!`${path}${sep}`.startsWith(`${join(folder)}${sep}`) || content.length !== size) throw damaged()
    if (type === typeFolder) makeFolder(path)
    else if (typesOfFile.has(type)) {
      makeFolder(dirname(path))
      writeFileSync(path, content, { mode: 0o600 })
    } else throw new Error(`the archive of the database has an entry of type ${type}, which is neither file nor folder`)
    at += blockBytes + Math.ceil(size / blockBytes) * blockBytes
  }
}

const damaged = (): Error => new Error('the archive of the database is damaged')

/** Returns a text of a head, which ends at a zero byte or at its length. */
function textAt(head: Buffer, at: number, length: number): string {
  const text = head.toString('utf8', at, at + length)
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}
