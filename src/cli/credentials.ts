import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What `brigade login` keeps for this user. */
export interface Credentials {
  readonly base_url: string
  readonly key: string
}

/** Writes the file, readable by its owner only, whole or not at all; its path. */
export function saveCredentials(folder: string, credentials: Credentials): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  const path = join(folder, 'credentials.json')
  const beside = `${path}.new`
  writeFileSync(beside, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 })
  chmodSync(beside, 0o600)
  renameSync(beside, path)
  return path
}
