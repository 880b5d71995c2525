/**
 * Compiles src/ to dist/ with tsc. It builds a new folder next to the old one, and replaces the old one only when the new one is complete. So a build that
 * fails does not change dist/, and a process that starts meanwhile never sees an incomplete dist/.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { root, runAsMain } from './paths.mjs'

const dist = join(root, 'dist')
const stampFile = join(dist, '.built-from')

/** Returns one hash over the path, size and time of every file that the build reads. Deleting a file also changes the hash. */
function sourceStamp() {
  const hash = createHash('sha256')
  const add = path => {
    const { size, mtimeMs } = statSync(path)
    hash.update(`${path.slice(root.length)} ${size} ${mtimeMs}\n`)
  }
  const walk = folder => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) walk(path)
      else if (!path.endsWith('.md')) add(path)
    }
  }
  add(join(root, 'tsconfig.json'))
  add(join(root, 'package-lock.json'))
  walk(join(root, 'src'))
  return hash.digest('hex')
}

/** Returns whether dist/ was made from exactly these sources. */
export function isBuilt() {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === sourceStamp()
}

/** Replaces dist/. On Windows an open file blocks the rename of a folder. In that case the files are copied over the old ones. */
function swapIn(fresh) {
  const old = `${dist}.old.${process.pid}`
  try {
    if (existsSync(dist)) renameSync(dist, old)
    renameSync(fresh, dist)
  } catch {
    cpSync(fresh, dist, { recursive: true, force: true })
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
 * Copies the archive of the last build, if it is for the same version of the database. Without an archive, the first start of a gateway makes the files
 * itself.
 */
function addTemplate(fresh) {
  const [before, file] = [templateIn(dist), templateIn(fresh)]
  if (existsSync(before)) cpSync(before, file)
  else spawnSync(process.execPath, [join(root, 'scripts', 'database-template.mjs'), file], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Builds dist/. Returns false when the sources do not compile. The terminal then shows the output of tsc. */
export function build() {
  const stamp = sourceStamp()
  const fresh = `${dist}.new.${process.pid}`
  const packageJson = createRequire(join(root, 'package.json')).resolve('typescript/package.json')
  const tsc = join(dirname(packageJson), JSON.parse(readFileSync(packageJson, 'utf8')).bin.tsc)
  try {
    const run = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.json'), '--outDir', fresh, '--noEmitOnError'], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    if (run.error) console.error(run.error.message)
    if (run.status !== 0) return false
    // npm makes the command executable only when it links it, so each build does it again.
    chmodSync(join(fresh, 'cli', 'brigade.js'), 0o755)
    addTemplate(fresh)
    writeFileSync(join(fresh, '.built-from'), stamp)
    swapIn(fresh)
    return true
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

runAsMain(import.meta.url, () => {
  process.exitCode = build() ? 0 : 1
})
