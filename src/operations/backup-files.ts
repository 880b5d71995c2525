/** Copies, lists and checks the files of a backup. */
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { copyFile, link, mkdir, readdir, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { inParallel } from '../agents/toolkit/memory-client/memory-client-parallel.ts'

/** One file of a backup. The path is relative to the backup and has forward slashes. */
export interface BackupFile {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

/** Files that are never copied: locks and sockets of the running process. */
const leftOut = /(^|\/)(postmaster\.pid|brigade\.lock\.[^/]*|[^/]*\.sock)$/

/** Maximum number of concurrent copies. Queries wait while the memory folder is copied, and this folder may have many small files. */
const filesAtOnce = 16

interface Tree {
  readonly folders: readonly string[]
  readonly files: readonly string[]
}

/** Returns the folders and files below `root` as sorted relative paths. Returns empty lists when the folder does not exist. */
export async function treeOf(root: string): Promise<Tree> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const pathOf = (entry: { parentPath: string; name: string }): string => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/')
  return {
    folders: entries
      .filter(entry => entry.isDirectory())
      .map(pathOf)
      .sort(),
    files: entries
      .filter(entry => entry.isFile())
      .map(pathOf)
      .filter(path => !leftOut.test(path))
      .sort(),
  }
}

/**
 * Copies a folder, including empty folders. With `share`, makes hard links where the file system supports them. Use `share` only for files that are
 * never written again. With `mayVanish`, skips files that are deleted during the copy.
 */
export async function copyTree(from: string, to: string, { share = false, mayVanish = false } = {}): Promise<void> {
  const { folders, files } = await treeOf(from)
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const folder of folders) await mkdir(join(to, folder), { recursive: true, mode: 0o700 })
  await inParallel(files, filesAtOnce, async file => {
    const copied = share
      ? link(join(from, file), join(to, file)).catch(() => copyOf(join(from, file), join(to, file)))
      : copyOf(join(from, file), join(to, file))
    await copied.catch((error: NodeJS.ErrnoException) => {
      if (!mayVanish || error.code !== 'ENOENT') throw error
    })
  })
}

/** Copies a file. The copy shares the blocks on disk where the file system supports it. */
function copyOf(from: string, to: string): Promise<void> {
  return copyFile(from, to, constants.COPYFILE_FICLONE)
}

/** Returns the files below `root` with their sizes and SHA-256. */
export async function sumsOf(root: string): Promise<BackupFile[]> {
  const { files } = await treeOf(root)
  return await inParallel(files, filesAtOnce, async path => ({ path, bytes: (await stat(join(root, path))).size, sha256: await sha256Of(join(root, path)) }))
}

/** Returns a description of the first file that is missing or differs from the list. Returns null when all files match. */
export async function damageOf(root: string, files: readonly BackupFile[]): Promise<string | null> {
  for (const { path, bytes, sha256 } of files) {
    const found = await stat(join(root, path)).catch(() => null)
    if (found === null) return `${path} is missing`
    if (found.size !== bytes) return `${path} has ${found.size} bytes, not ${bytes}`
    if ((await sha256Of(join(root, path))) !== sha256) return `${path} is not what was backed up: its SHA-256 differs`
  }
  return null
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const part of createReadStream(path)) hash.update(part as Buffer)
  return hash.digest('hex')
}
