/** Processes of the bench: started on a core of their own, watched, and ended whatever happens. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'

const startDeadlineMs = 60_000
const stopDeadlineMs = 15_000
const clockTickMs = 10

/** The gateway under test has core 0 to itself; everything else of the bench is on core 1. */
export const core = { gateway: 0, load: 1 }

/** Whether processes can be bound to a core here: Linux with taskset and two cores. */
export const isPinned =
  process.platform === 'linux' && availableParallelism() > 1 && [0, 1].every(n => spawnSync('taskset', ['-c', String(n), 'true']).status === 0)

const running = new Set()

/** What a child sees of this environment: no setting or provider key of the person who runs the bench. */
const baseEnv = Object.fromEntries(
  ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'SYSTEMROOT', 'APPDATA', 'LANG'].flatMap(name =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  ),
)

function launch(onCore, args, env, cwd) {
  const [file, all] = isPinned && onCore !== null ? ['taskset', ['-c', String(onCore), process.execPath, ...args]] : [process.execPath, args]
  const child = spawn(file, all, { cwd, env: { ...baseEnv, NODE_ENV: 'production', ...env }, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true })
  const started = { child, said: '' }
  child.stderr.on('data', text => {
    started.said = (started.said + text).slice(-4000)
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return started
}

/** Starts `node ...args` and resolves when a line it prints matches `ready`, with the match. Its later output is read and dropped. */
export async function startServer(onCore, args, { ready, env = {}, cwd } = {}) {
  const started = launch(onCore, args, env, cwd)
  const { child } = started
  const lines = createInterface({ input: child.stdout })
  let timer
  const match = await new Promise((done, failed) => {
    const giveUp = why => failed(new Error(`${args[0]} ${why}\n${started.said}`))
    timer = setTimeout(giveUp, startDeadlineMs, `did not start within ${startDeadlineMs / 1000} s`)
    child.once('error', error => giveUp(error.message))
    child.once('exit', code => giveUp(`ended with code ${code}`))
    lines.on('line', line => {
      const found = ready.exec(line)
      if (found) done(found)
    })
  }).finally(() => clearTimeout(timer))
  return { pid: child.pid, match, stop: () => stop(child) }
}

/** Runs `node ...args` to its end and returns what it printed. Throws when it fails. */
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

/** Ends at once what still runs. */
export function killAll() {
  for (const child of running) child.kill('SIGKILL')
}

/** Resident memory in MiB; null where the system does not say. */
export function rssMibOf(pid) {
  try {
    if (process.platform === 'linux') return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
    if (process.platform === 'win32') return null
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) / 1024
  } catch {
    return null
  }
}

/** Processor time of all threads so far, in ms, to the tick of 10 ms; null where /proc is missing. */
export function cpuMsOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * clockTickMs
  } catch {
    return null
  }
}
