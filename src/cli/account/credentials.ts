import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What `brigade login` stores for this user. */
export interface Credentials {
  readonly base_url: string
  readonly key: string
}

const fileName = 'credentials.json'

/** Writes the file and returns its path. Only its owner can read the file. The file is written completely or not at all. */
export function saveCredentials(folder: string, credentials: Credentials): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const path = join(folder, fileName)
  const beside = `${path}.new`
  writeFileSync(beside, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 })
  chmodSync(beside, 0o600)
  renameSync(beside, path)
  return path
}

/** Returns the stored credentials. Returns null when the file is missing or unreadable. Another `brigade login` repairs the file. */
export function readCredentials(folder: string): Credentials | null {
  const path = join(folder, fileName)
  if (!existsSync(path)) return null
  try {
    const { base_url, key } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Credentials>
    return typeof base_url === 'string' && URL.canParse(base_url) && typeof key === 'string' ? { base_url, key } : null
  } catch {
    return null
  }
}

/** Removes the file, and also an unfinished new version of it. Throws errors of the disk. */
export function removeCredentials(folder: string): void {
  for (const name of [fileName, `${fileName}.new`]) rmSync(join(folder, name), { force: true })
}
