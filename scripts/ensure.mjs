/**
 * Makes a checkout ready to run on a machine that has only Node. It installs dependencies when node_modules is missing or differs from package-lock.json,
 * and builds dist/ when the sources changed. It imports only modules of Node and of this folder.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, isBuilt } from './build.mjs'
import { root, runAsMain } from './paths.mjs'

const lockFile = join(root, 'package-lock.json')
const modulesFolder = join(root, 'node_modules')
const stampFile = join(modulesFolder, '.installed-from')
const nodeMin = [20, 20]

function checkNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])) return
  console.error(`Brigade needs Node ${nodeMin.join('.')} or newer; this is ${process.versions.node}.`)
  process.exit(1)
}

/**
 * Compares npm's record of its last install with the lock file. Returns whether every package is installed in the same version. Optional packages may be
 * missing.
 */
function installedMatchesLock() {
  const noted = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(noted)) return false
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages
  const present = JSON.parse(readFileSync(noted, 'utf8')).packages
  return Object.entries(wanted).every(
    ([path, entry]) => path === '' || present[path]?.version === entry.version || (entry.optional === true && present[path] === undefined),
  )
}

/** Returns whether node_modules is a link, so that its packages belong to another checkout. */
function isLinked() {
  return lstatSync(modulesFolder, { throwIfNoEntry: false })?.isSymbolicLink() === true
}

/** Ends the process, because npm ci empties the folder to which the link leads. */
function refuseLink() {
  const target = existsSync(modulesFolder) ? realpathSync(modulesFolder) : 'a folder that does not exist'
  console.error(
    `node_modules is a link to ${target}, whose packages are not those of package-lock.json. npm ci would empty that folder. Remove the link, or install the packages there. Nothing was started.`,
  )
  process.exit(1)
}

/**
 * Installs the packages of package-lock.json unless they are installed already. It never writes into a node_modules that is a link. Ends the process
 * with exit code 1 when npm fails, or when a linked node_modules has other packages.
 */
export function ensureInstalled() {
  checkNodeVersion()
  const stamp = createHash('sha256').update(readFileSync(lockFile)).digest('hex')
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  const isMatch = installedMatchesLock()
  if (isLinked()) {
    if (!isMatch) refuseLink()
    return
  }
  if (!isMatch) {
    console.error('Installing dependencies (npm ci) ...')
    const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
    const npm = process.env.npm_execpath
    const run = npm?.endsWith('.js')
      ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: ['ignore', 2, 2] })
      : spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
    if (run.status !== 0) {
      console.error(`npm ci failed${run.error ? `: ${run.error.message}` : ''}. Nothing was started.`)
      process.exit(1)
    }
  }
  writeFileSync(stampFile, stamp)
}

/** Makes the checkout ready. Ends the process with exit code 1 when this fails. */
export async function ensure() {
  ensureInstalled()
  if (isBuilt()) return
  console.error('Building ...')
  if (!(await build())) {
    console.error('The build failed. Nothing was started.')
    process.exit(1)
  }
}

runAsMain(import.meta.url, ensure)
