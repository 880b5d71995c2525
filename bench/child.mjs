/** Starts the processes of the bench on their cores, measures them, and makes sure that all of them end. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { root } from '../scripts/paths.mjs'

const startDeadlineMs = 60_000
const stopDeadlineMs = 15_000
const clockTickMs = 10

/** The gateway under test has core 0 alone. All other parts of the bench run on core 1. */
export const core = { gateway: 0, load: 1 }

/** True when processes can be bound to a core here. This needs Linux with taskset and two cores. */
export const isPinned =
  process.platform === 'linux' && availableParallelism() > 1 && [0, 1].every(n => spawnSync('taskset', ['-c', String(n), 'true']).status === 0)

const running = new Set()

/** The environment of a child. It contains no setting or provider key of the person who runs the bench. */
const baseEnv = Object.fromEntries(
  ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'SYSTEMROOT', 'APPDATA', 'LANG'].flatMap(name =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  ),
)

function launch(onCore, args, env, cwd, stdio = ['ignore', 'pipe', 'pipe']) {
  const [file, all] = isPinned && onCore !== null ? ['taskset', ['-c', String(onCore), process.execPath, ...args]] : [process.execPath, args]
  const child = spawn(file, all, { cwd, env: { ...baseEnv, NODE_ENV: 'production', ...env }, stdio, windowsHide: true })
  const started = { child, said: '' }
  child.stderr.on('data', text => {
    started.said = (started.said + text).slice(-4000)
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return started
}

/** Matches a line of --trace-gc about one garbage collection: the MiB before and after it. */
const collection = /: (?:Scavenge|Mark-Compact)[^0-9]* ([\d.]+) \([\d.]+\) -> ([\d.]+) /
const bytesOfMib = 1024 * 1024
const probeArgs = ['--trace-gc', '--import', pathToFileURL(join(root, 'bench', 'probe.mjs')).href]
const probeDeadlineMs = 10_000

/**
 * Starts `node ...args`. Resolves with the match when a line that it prints matches `ready`. Its later output is read and dropped. With `isProbed` the
 * result also has `probe(ask)` (see probe.mjs) and `garbageBytes()`. The latter is the number of bytes that garbage collections have freed so far.
 */
export async function startServer(onCore, args, { ready, env = {}, cwd, isProbed = false } = {}) {
  const started = isProbed ? launch(onCore, [...probeArgs, ...args], env, cwd, ['ignore', 'pipe', 'pipe', 'ipc']) : launch(onCore, args, env, cwd)
  const { child } = started
  const lines = createInterface({ input: child.stdout })
  let timer
  let freedMib = 0
  const match = await new Promise((done, failed) => {
    const giveUp = why => failed(new Error(`${args[0]} ${why}\n${started.said}`))
    timer = setTimeout(giveUp, startDeadlineMs, `did not start within ${startDeadlineMs / 1000} s`)
    child.once('error', error => giveUp(error.message))
    child.once('exit', code => giveUp(`ended with code ${code}`))
    lines.on('line', line => {
      const freed = isProbed ? collection.exec(line) : null
      if (freed) freedMib += Number(freed[1]) - Number(freed[2])
      const found = ready.exec(line)
      if (found) done(found)
    })
  }).finally(() => clearTimeout(timer))
  const probed = isProbed ? { probe: ask => askProbe(child, ask), garbageBytes: () => freedMib * bytesOfMib } : {}
  return { pid: child.pid, match, stop: () => stop(child), ...probed }
}

async function askProbe(child, ask) {
  const answered = once(child, 'message', { signal: AbortSignal.timeout(probeDeadlineMs) })
  child.send(ask)
  const [answer] = await answered
  return answer
}

/** Runs `node ...args` to its end and returns its output. Throws when it fails. */
export async function runToEnd(onCore, args, { env = {}, cwd } = {}) {
  const started = launch(onCore, args, env, cwd)
  let printed = ''
  started.child.stdout.on('data', text => {
    printed += text
  })
  const [code] = await once(started.child, 'close')
  if (code !== 0) throw new Error(`${args[0]} ended with code ${code}\n${started.said}`)
  return printed
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopDeadlineMs)
  await ended
  clearTimeout(timer)
}

/** Kills the processes that still run. */
export function killAll() {
  for (const child of running) child.kill('SIGKILL')
}

/** Returns a process and all processes below it, with itself first. */
function familyOf(pid) {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`)
    const children = tasks.flatMap(task => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean))
    return [pid, ...children.flatMap(familyOf)]
  } catch {
    return [pid]
  }
}

/** Returns the resident memory of a process and its children in MiB. Returns null when the system does not say. */
export function rssMibOf(pid) {
  try {
    if (process.platform === 'linux') return familyOf(pid).reduce((total, id) => total + rssKibOf(id), 0) / 1024
    if (process.platform === 'win32') return null
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024
  } catch {
    return null
  }
}

const rssKibOf = pid => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])

/**
 * Returns the processor time of all threads of a process and its children so far, in ms. The resolution is a tick of 10 ms. Returns null when /proc is
 * missing.
 */
export function cpuMsOf(pid) {
  try {
    return familyOf(pid).reduce((total, id) => total + ticksOf(id), 0) * clockTickMs
  } catch {
    return null
  }
}

/** Returns the processor time of the main thread of a process so far, in ms, with the same resolution. Calls pass through this thread. */
export function mainThreadCpuMsOf(pid) {
  try {
    return ticksOf(`${pid}/task/${pid}`) * clockTickMs
  } catch {
    return null
  }
}

function ticksOf(task) {
  const stat = readFileSync(`/proc/${task}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
