import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The session that `brigade login --link` keeps for this user. */
export interface KeptSession {
  readonly base_url: string
  /** The cookie with its name. It acts as the person until it ends. */
  readonly cookie: string
}

const fileName = 'session.json'

/** Writes the session. Only this user can read the file, and it is written completely or not at all. */
export function saveSession(folder: string, session: KeptSession): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const path = join(folder, fileName)
  writeFileSync(`${path}.new`, `${JSON.stringify(session)}\n`, { mode: 0o600 })
  chmodSync(`${path}.new`, 0o600)
  renameSync(`${path}.new`, path)
}

/** Returns the session. Null when the file is missing or unreadable. */
export function readSession(folder: string): KeptSession | null {
  try {
    const { base_url, cookie } = JSON.parse(readFileSync(join(folder, fileName), 'utf8')) as Partial<KeptSession>
    return typeof base_url === 'string' && URL.canParse(base_url) && typeof cookie === 'string' && /^[!-~]+$/.test(cookie) ? { base_url, cookie } : null
  } catch {
    return null
  }
}

/** Removes the session. Throws errors of the disk. */
export function removeSession(folder: string): void {
  for (const name of [fileName, `${fileName}.new`]) rmSync(join(folder, name), { force: true })
}
