import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'

/**
 * Puts the database that the run migrated at its start into an empty data folder, because a gateway would need three seconds of processor time to make and
 * migrate one. The gateway that starts there does the rest of a first start. A folder that is not empty is not changed.
 */
export function layMigrated(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true })
  if (readdirSync(dataDir).length > 0) return
  const folder = join(dataDir, 'db', 'postgres')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  // The names in the archive begin with a slash. tar removes the slash and prints a message.
  execFileSync('tar', ['-xf', inject('embeddedDump'), '-C', folder], { stdio: ['ignore', 'ignore', 'pipe'] })
}
