/**
 * Installs npm programs that tests run and that are too large to be dependencies. Each is installed when it is first needed, in a separate folder
 * under node_modules/.cache, and stays there.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './paths.mjs'

/** Returns the path of an npm program in its folder. */
export const programIn = (folder, program) => join(folder, 'node_modules', '.bin', program)

/** Returns whether the program starts and prints its version. A partly installed program does not. */
export function starts(path, home) {
  const { status } = spawnSync(path, ['--version'], { stdio: 'ignore', timeout: 60_000, env: { PATH: process.env.PATH, HOME: home } })
  return status === 0
}

/**
 * Returns the folder `node_modules/.cache/<name>` with the packages in it, or null when they cannot be installed here. `works(folder)` says whether the
 * installation is complete. A new folder gets its final name only after `works` has returned true.
 */
export function installedFolder(name, packages, works) {
  const folder = join(root, 'node_modules', '.cache', name)
  if (existsSync(folder)) return folder
  const started = join(dirname(folder), `.${name.split('/').at(-1)}-${process.pid}`)
  mkdirSync(started, { recursive: true })
  console.error(`Installing ${packages.join(', ')} ...`)
  const args = ['install', '--prefix', started, '--no-save', '--no-audit', '--no-fund', '--loglevel=error', ...packages]
  const { status } = spawnSync('npm', args, { stdio: 'inherit', shell: process.platform === 'win32', timeout: 300_000 })
  if (status === 0 && works(started)) {
    rmSync(folder, { recursive: true, force: true })
    renameSync(started, folder)
    return folder
  }
  rmSync(started, { recursive: true, force: true })
  return null
}
