/** Finds and runs the development tools of node_modules without a shell, so that every script works on every system. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { root } from './paths.mjs'

/** Returns the script that a package's `bin` names. */
export function binOf(packageName, command = packageName.split('/').at(-1)) {
  const folder = join(root, 'node_modules', ...packageName.split('/'))
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return join(folder, typeof bin === 'string' ? bin : bin[command])
}

/** Runs a tool to its end. Returns its exit code and its output on each stream. */
export function runTool(script, args, { cwd = root, env = process.env } = {}) {
  const run = spawnSync(process.execPath, [script, ...args], { cwd, env, encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 })
  return { code: run.status ?? 1, stdout: run.stdout ?? '', stderr: `${run.stderr ?? ''}${run.error ? run.error.message : ''}` }
}

/** Runs a tool asynchronously. Resolves when the tool has ended, with the result of `runTool`. */
export function startTool(script, args, { cwd = root, env = process.env } = {}) {
  return new Promise(done => {
    const child = spawn(process.execPath, [script, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', text => (texts[name] += text))
    child.once('error', error => done({ code: 1, stdout: texts.stdout, stderr: texts.stderr + error.message }))
    child.once('close', code => done({ code: code ?? 1, ...texts }))
  })
}

/** Returns the paths of the files below `folder` that `isWanted` accepts, relative to the checkout and with slashes. node_modules is left out. */
export function filesBelow(folder, isWanted, base = root) {
  const start = join(base, folder)
  if (!existsSync(start)) return []
  return readdirSync(start, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry =>
      relative(base, join(entry.parentPath ?? entry.path, entry.name))
        .split(sep)
        .join('/'),
    )
    .filter(path => !path.includes('node_modules/') && isWanted(path))
    .sort()
}
