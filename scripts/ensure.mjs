/**
 * Makes a checkout ready to run on a machine that has only Node. It installs dependencies when node_modules is missing or differs from package-lock.json,
 * and builds dist/ when the sources changed. It imports only modules of Node and of this folder.
 *
 * A checkout that only runs gets what building and running need: the dependencies, and those of scripts/build-packages. Tests and checks install the
 * rest when they run for the first time. Decision 0764 says why.
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

const packagesIn = file => JSON.parse(readFileSync(file, 'utf8')).packages

/** Returns npm's record of its last install. It is empty when nothing is installed. */
function installedPackages() {
  const noted = join(modulesFolder, '.package-lock.json')
  return existsSync(noted) ? packagesIn(noted) : {}
}

/**
 * Compares npm's record of its last install with the lock file. Returns whether every package is installed in the same version. Optional packages may be
 * missing. Packages that only tests and checks need count when `tools` is true.
 */
function installedMatchesLock(present, tools) {
  if (Object.keys(present).length === 0) return false
  return Object.entries(packagesIn(lockFile)).every(
    ([path, entry]) =>
      path === '' || (entry.dev === true && !tools) || present[path]?.version === entry.version || (entry.optional === true && present[path] === undefined),
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

/** Runs npm with these words. While a line on the terminal shows the progress, its output is kept, and the caller prints it if npm fails. */
function runNpm(words) {
  const args = [...words, '--no-audit', '--no-fund', '--loglevel=error']
  const script = process.env.npm_execpath
  const stdio = keepsOutput ? ['ignore', 'pipe', 'pipe'] : ['ignore', 2, 2]
  const child = script?.endsWith('.js')
    ? spawn(process.execPath, [script, ...args], { cwd: root, stdio })
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

/** Runs npm as one step. Ends the process with exit code 1 when npm fails. */
async function npm(words, { doing, plain }) {
  const { isGood, output } = await step({ doing, plain, done: result => (result.isGood ? installedText(result.output) : null) }, () => runNpm(words))
  if (isGood) return
  console.error(`${output}npm ${words[0]} failed. Nothing was started.`)
  process.exit(1)
}

/**
 * Installs the packages of package-lock.json unless they are installed already: with `tools` all of them, else those that building and running need. It
 * never writes into a node_modules that is a link, and keeps tools that were installed before. Ends the process with exit code 1 when npm fails, or when a
 * linked node_modules has other packages.
 */
export async function ensureInstalled({ tools = false } = {}) {
  checkNodeVersion()
  const hash = createHash('sha256').update(readFileSync(lockFile)).digest('hex')
  // The stamp of an install without tools has a word more.
  const stamps = { all: hash, run: `${hash} run` }
  const stamp = existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : ''
  if (stamp === stamps.all || (stamp === stamps.run && !tools)) return
  const present = installedPackages()
  if (isLinked()) {
    if (!installedMatchesLock(present, tools)) refuseLink()
    return
  }
  let hasTools = installedMatchesLock(present, true)
  if (!hasTools && (tools || !installedMatchesLock(present, false))) hasTools = await install(present, tools)
  writeFileSync(stampFile, hasTools ? stamps.all : stamps.run)
}

/** Installs what is missing. Resolves with whether the tools for tests and checks are among it. */
async function install(present, tools) {
  if (installedMatchesLock(present, false)) {
    // npm ci would empty the folder, from which a gateway may be running.
    await npm(['install', '--no-save', '--include=dev'], {
      doing: 'Installing the packages for tests and checks (npm install)',
      plain: 'Installing the packages for tests and checks (npm install --include=dev) ...',
    })
    if (installedMatchesLock(installedPackages(), true)) return true
  }
  const isKept = tools || Object.values(present).some(entry => entry.dev === true)
  await npm(['ci', isKept ? '--include=dev' : '--omit=dev'], { doing: 'Installing the packages (npm ci)', plain: 'Installing dependencies (npm ci) ...' })
  return isKept
}

/**
 * Makes the checkout ready, with `tools` also for tests and checks. With `types` the build has its types checked and written, which needs the tools. Ends the
 * process with exit code 1 when this fails.
 */
export async function ensure({ tools = false, types = tools } = {}) {
  await ensureInstalled({ tools: tools || types })
  if (isBuilt({ types })) return
  if (!(await step({ doing: 'Building', plain: 'Building ...', done: isGood => (isGood ? 'Built' : null) }, () => build({ types })))) {
    console.error('The build failed. Nothing was started.')
    process.exit(1)
  }
}

runAsMain(import.meta.url, () => ensure({ types: process.argv.includes('--types') }))
