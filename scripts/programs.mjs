/**
 * Programs of npm that tests run and that are too large to be dependencies: each is installed when it is first asked for, in a folder of
 * its own under node_modules/.cache, and kept there.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from './paths.mjs'

/** The path of an npm program in its folder. */
export const programIn = (folder, program) => join(folder, 'node_modules', '.bin', program)

/** True when the program starts and says its version: what was installed halfway does not. */
export function starts(path, home) {
  const { status } = spawnSync(path, ['--version'], { stdio: 'ignore', timeout: 60_000, env: { PATH: process.env.PATH, HOME: home } })
  return status === 0
}

/**
 * The folder `node_modules/.cache/<name>` with the packages in it, or null when they cannot be installed here. `works(folder)` says whether
 * what was installed is whole: a folder has its name only when that was so once.
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
