/**
 * Makes a checkout ready to run on a machine that has only Node. It installs dependencies when node_modules is missing or differs from package-lock.json,
 * and builds dist/ when the sources changed. It imports only modules of Node and of this folder.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, isBuilt } from './build.mjs'
import { root, runAsMain } from './paths.mjs'
import { keepsOutput, outputMaxChars, step } from './progress.mjs'

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

/** Returns what npm says that it did, without its own duration. */
const installedText = output => `Installed ${/added (\d+ packages?)/.exec(output)?.[1] ?? 'the packages'}`

/** Runs npm ci. While a line on the terminal shows the progress, its output is kept, and the caller prints it if npm fails. */
function runNpm() {
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  const stdio = keepsOutput ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2]
  const child = npm?.endsWith('.js')
    ? spawn(process.execPath, [npm, ...args], { cwd: root, stdio })
    : spawn('npm', args, { cwd: root, stdio, shell: process.platform === 'win32' })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', text => {
      output = (output + text).slice(-outputMaxChars)
    })
  return new Promise(done => {
    child.once('error', error => done({ isGood: false, output: `${error.message}\n` }))
    child.once('close', code => done({ isGood: code === 0, output }))
  })
}

/**
 * Installs the packages of package-lock.json unless they are installed already. It never writes into a node_modules that is a link. Ends the process
 * with exit code 1 when npm fails, or when a linked node_modules has other packages.
 */
export async function ensureInstalled() {
  checkNodeVersion()
  const stamp = createHash('sha256').update(readFileSync(lockFile)).digest('hex')
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return
  const isMatch = installedMatchesLock()
  if (isLinked()) {
    if (!isMatch) refuseLink()
    return
  }
  if (!isMatch) {
    const words = { doing: 'Installing the packages (npm ci)', plain: 'Installing dependencies (npm ci) ...' }
    const { isGood, output } = await step({ ...words, done: result => (result.isGood ? installedText(result.output) : null) }, runNpm)
    if (!isGood) {
      console.error(`${output}npm ci failed. Nothing was started.`)
      process.exit(1)
    }
  }
  writeFileSync(stampFile, stamp)
}

/** Makes the checkout ready. Ends the process with exit code 1 when this fails. */
export async function ensure() {
  await ensureInstalled()
  if (isBuilt()) return
  if (!(await step({ doing: 'Building', plain: 'Building ...', done: isGood => (isGood ? 'Built' : null) }, build))) {
    console.error('The build failed. Nothing was started.')
    process.exit(1)
  }
}

runAsMain(import.meta.url, ensure)
