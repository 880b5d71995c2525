/**
 * Compiles the server of src/ to dist/, and concurrently the web console of src/console to dist/console with Vite. Each is built only when its sources
 * changed. A build makes a new folder next to the old one, and replaces the old one only when the new one is complete. So a build that fails does not change
 * dist/, and a process that starts meanwhile never sees an incomplete dist/.
 *
 * A build for a person who only starts a gateway neither checks types nor writes them, and needs no TypeScript. `--without-types` makes such a build. Decisions
 * 0764 and 0808 say why.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { root, runAsMain } from './paths.mjs'
import { keepsOutput, outputMaxChars, writeOutput } from './progress.mjs'

const dist = join(root, 'dist')
const consoleFolder = join(root, 'src', 'console')
const builtConsole = join(dist, 'console')

/** The two parts of the build: the files that each reads, and the folder that it writes. The stamp in that folder says what it was made from. */
const parts = {
  server: { folder: dist, reads: ['tsconfig.json', 'package-lock.json', 'scripts/strip-types.mjs', 'src'], skips: consoleFolder },
  console: { folder: builtConsole, reads: ['package-lock.json', 'scripts/build-console.mjs', 'src/console'], skips: null },
}
const stampIn = folder => join(folder, '.built-from')

/** Returns one hash over the path, size and time of every file that a part reads. Deleting a file also changes the hash. */
function sourceStamp({ reads, skips }) {
  const hash = createHash('sha256')
  const add = path => {
    if (path === skips || path.endsWith('.md')) return
    const stat = statSync(path)
    if (stat.isDirectory()) for (const name of readdirSync(path).sort()) add(join(path, name))
    else hash.update(`${path.slice(root.length)} ${stat.size} ${stat.mtimeMs}\n`)
  }
  for (const name of reads) add(join(root, name))
  return hash.digest('hex')
}

/** The stamp of a server without checked types has this word at its end. */
const untyped = ' without types'
const isFresh = (part, ends = ['']) => {
  const made = existsSync(stampIn(part.folder)) ? readFileSync(stampIn(part.folder), 'utf8') : ''
  const stamp = sourceStamp(part)
  return ends.some(end => made === stamp + end)
}
const isServerFresh = types => isFresh(parts.server, types ? [''] : ['', untyped])

/** Returns whether dist/ was made from exactly these sources, with `types` also that their types were checked and written. */
export function isBuilt({ types = true } = {}) {
  return isServerFresh(types) && isFresh(parts.console)
}

/** Replaces a folder of the build. On Windows an open file blocks the rename of a folder. In that case the files are copied over the old ones. */
function swapIn(fresh, folder) {
  const old = `${dist}.old.${process.pid}`
  try {
    if (existsSync(folder)) renameSync(folder, old)
    renameSync(fresh, folder)
  } catch {
    cpSync(fresh, folder, { recursive: true, force: true })
    rmSync(fresh, { recursive: true, force: true })
  }
  rmSync(old, { recursive: true, force: true })
}

/** Returns the path of the archive of an empty database in dist/. Its name contains the version of the database. */
function templateIn(folder) {
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules', '@electric-sql', 'pglite', 'package.json'), 'utf8'))
  return join(folder, 'platform', 'db', 'embedded', `new-database-${version}.tar.gz`)
}

/**
 * Copies the archive of the last build if it is for the same version of the database, or makes one. Without an archive, the first start of a gateway makes
 * the files itself, so a failure is no failure of the build.
 */
async function addTemplate(fresh) {
  const [before, file] = [templateIn(dist), templateIn(fresh)]
  mkdirSync(dirname(file), { recursive: true })
  if (existsSync(before)) cpSync(before, file)
  else await isGood([join(root, 'scripts', 'database-template.mjs'), file])
}

/** Compiles the server into a folder. Resolves with whether the sources compile. The terminal then shows the output of the compiler. */
async function compileServer(fresh, types) {
  if (!types) return await isGood([join(root, 'scripts', 'strip-types.mjs'), fresh])
  const tsc = pathOfTsc()
  if (tsc === null) {
    console.error('A build with types needs TypeScript. Run npm ci first, or build with --without-types.')
    return false
  }
  return await isGood([tsc, '-p', join(root, 'tsconfig.json'), '--outDir', fresh, '--noEmitOnError', ...(keepsOutput ? ['--pretty'] : [])])
}

/** Returns the path of tsc. Null in a checkout that only runs. */
function pathOfTsc() {
  try {
    const packageJson = createRequire(join(root, 'package.json')).resolve('typescript/package.json')
    return join(dirname(packageJson), JSON.parse(readFileSync(packageJson, 'utf8')).bin.tsc)
  } catch {
    return null
  }
}

/** Runs node on this terminal. Resolves with whether it ended with exit code 0. */
function isGood(args) {
  return new Promise(done => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', ...(keepsOutput ? ['pipe', 'pipe'] : ['inherit', 'inherit'])] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', text => {
        output = (output + text).slice(-outputMaxChars)
      })
    child.once('error', error => {
      console.error(error.message)
      done(false)
    })
    child.once('close', code => {
      writeOutput(output)
      done(code === 0)
    })
  })
}

/** Builds only the console, if its sources changed. Resolves with whether it is built. */
export async function buildConsoleIfChanged() {
  if (isFresh(parts.console)) return true
  const stamp = sourceStamp(parts.console)
  const fresh = `${builtConsole}.new.${process.pid}`
  try {
    if (!(await isGood([join(root, 'scripts', 'build-console.mjs'), fresh]))) return false
    writeFileSync(stampIn(fresh), stamp)
    swapIn(fresh, builtConsole)
    return true
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/**
 * Builds what changed, with `types` checked and written. Resolves with false when the sources do not compile. The terminal then shows the errors.
 */
export async function build({ types = true } = {}) {
  const hasConsole = isFresh(parts.console)
  // When nothing changed, somebody asked for the build, so it compiles the server again.
  const hasServer = !hasConsole && isServerFresh(types)
  const stamps = { server: sourceStamp(parts.server), console: sourceStamp(parts.console) }
  const fresh = `${dist}.new.${process.pid}`
  const freshConsole = join(fresh, 'console')
  try {
    const made = await Promise.all([
      hasServer || compileServer(fresh, types),
      hasConsole || isGood([join(root, 'scripts', 'build-console.mjs'), freshConsole]),
      hasServer || addTemplate(fresh),
    ])
    if (made.includes(false)) return false
    if (hasConsole) cpSync(builtConsole, freshConsole, { recursive: true })
    writeFileSync(stampIn(freshConsole), stamps.console)
    if (hasServer) {
      swapIn(freshConsole, builtConsole)
      return true
    }
    // npm makes a command executable only when it links it, so each build does it again.
    for (const command of ['brigade.js', 'brigade-gateway.js']) chmodSync(join(fresh, 'cli', command), 0o755)
    writeFileSync(stampIn(fresh), types ? stamps.server : stamps.server + untyped)
    swapIn(fresh, dist)
    return true
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

runAsMain(import.meta.url, async () => {
  process.exitCode = (await build({ types: !process.argv.includes('--without-types') })) ? 0 : 1
})
