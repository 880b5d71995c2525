/**
 * `node scripts/first-minute.mjs` measures how long a newcomer waits for the first answered chat, in two ways: with the packed file (install it in an empty
 * folder, start it, ask), and in a fresh clone (`npm start`, ask). Each has an empty home folder, so nothing comes from a cache of npm. It prints both times
 * with their bars and a verdict, and ends with exit code 1 when one is over its bar. The parts are exported for the test.
 */
import { execFile, spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ensure } from './ensure.mjs'
import { packStaged, stagePackage } from './pack.mjs'
import { root, runAsMain } from './paths.mjs'

const run = promisify(execFile)

/** The longest times to the answered chat, in milliseconds. */
export const bars = { packedMs: 20_000, cloneMs: 30_000 }

/** A start that takes longer than this failed. */
const startDeadlineMs = 240_000
/** A command of npm that takes longer than this failed. */
const npmDeadlineMs = 240_000
const stopDeadlineMs = 20_000

/** The variables of this machine that a program needs to reach the registry. */
const reachVariables =
  /^(path|(https?|no|all)_proxy|node_extra_ca_certs|ssl_cert_(file|dir)|npm_config_(registry|cafile|https?_proxy|proxy|noproxy|strict_ssl)|systemroot|comspec|pathext)$/i

/** Returns the environment of a newcomer: an empty home folder, and no settings of Brigade or npm but the way to the registry. */
export async function newcomer(home) {
  mkdirSync(home, { recursive: true })
  const reach = Object.fromEntries(Object.entries(process.env).filter(([name]) => reachVariables.test(name)))
  // A registry may be named in the .npmrc of the present home folder.
  const { stdout } = await run('npm', ['config', 'get', 'registry'], { shell: process.platform === 'win32' })
  return { ...reach, npm_config_registry: stdout.trim(), HOME: home, USERPROFILE: home, PORT: '0', LOCAL_SERVERS: 'off' }
}

/** Returns whether npm reaches its registry. */
export async function reachesRegistry() {
  const args = ['view', 'express', 'version', '--fetch-retries=0', '--fetch-timeout=10000', '--prefer-online']
  return run('npm', args, { timeout: 20_000, shell: process.platform === 'win32' }).then(
    () => true,
    () => false,
  )
}

/** Runs npm in a folder. Rejects with its output when it fails. */
export async function npm(args, cwd, env) {
  const words = [...args, '--no-audit', '--no-fund', '--loglevel=error']
  return (await run('npm', words, { cwd, env, timeout: npmDeadlineMs, maxBuffer: 16 << 20, shell: process.platform === 'win32' })).stdout
}

/** Copies what a clone of the present state contains: files that git tracks or would add. */
export async function copyClone(to) {
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, maxBuffer: 16 << 20 })
  for (const name of stdout.split('\0')) {
    const from = join(root, name)
    if (name === '' || name === 'node_modules' || !existsSync(from)) continue
    mkdirSync(dirname(join(to, name)), { recursive: true })
    cpSync(from, join(to, name))
  }
}

/**
 * Packs the present state. `change` may change the content of the package before. dist/ of this checkout must be built with types. A later call for the same
 * folder uses the content of the first call. Resolves with the path of the file.
 * @param {string} folder
 * @param {(staged: string) => void} [change]
 */
export async function packed(folder, change = () => {}) {
  const staged = join(folder, 'to-pack')
  if (!existsSync(staged)) await stagePackage(staged)
  change(staged)
  return await packStaged(staged, mkdtempSync(join(folder, 'packed-')))
}

/** Starts a command and resolves when its gateway listens, with its address, the key if it prints one, and a function that ends it. */
export function started(program, args, cwd, env) {
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
    shell: process.platform === 'win32',
  })
  let said = ''
  const exited = new Promise(done => child.once('exit', done))
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const signal = word => process.kill(process.platform === 'win32' ? child.pid : -child.pid, word)
    const timer = setTimeout(() => signal('SIGKILL'), stopDeadlineMs)
    signal('SIGTERM')
    await exited
    clearTimeout(timer)
  }
  const ready = new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`did not listen within ${startDeadlineMs} ms:\n${said.slice(-4000)}`)), startDeadlineMs)
    const read = text => {
      said += text
      const url = /listens on (http:\S+)/.exec(said)?.[1]
      // The gateway writes the address and all that follows with one write.
      if (url === undefined || !said.endsWith('\n')) return
      clearTimeout(timer)
      done({ url, key: /API key +(br-\S+)/.exec(said)?.[1] ?? null, said: () => said, stop })
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', read)
    child.once('error', failed)
    void exited.then(code => {
      clearTimeout(timer)
      failed(new Error(`ended with ${code}:\n${said.slice(-4000)}`))
    })
  })
  return ready.catch(async error => {
    await stop()
    throw error
  })
}

/** Asks the gateway. Rejects unless the chat is answered. */
export async function ask({ url }, key) {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  const body = await reply.json()
  if (reply.status !== 200 || typeof body.choices?.[0]?.message?.content !== 'string') throw new Error(`${reply.status}: ${JSON.stringify(body)}`)
}

/** Installs the packed file in an empty folder, starts it and asks. Resolves with the times in milliseconds. */
export async function packedMinute(file, folder) {
  const env = await newcomer(join(folder, 'home'))
  const project = join(folder, 'project')
  mkdirSync(project, { recursive: true })
  const beganMs = Date.now()
  await npm(['install', file], project, env)
  const installedMs = Date.now()
  const gateway = await started('npx', ['brigade-gateway'], project, env)
  try {
    const listenedMs = Date.now()
    await ask(gateway, gateway.key)
    return { installMs: installedMs - beganMs, startMs: listenedMs - installedMs, totalMs: Date.now() - beganMs, project, env, key: gateway.key }
  } finally {
    await gateway.stop()
  }
}

/** Runs `npm start` in a copy of the checkout as a clone has it, and asks. Resolves with the times in milliseconds. */
export async function cloneMinute(folder) {
  const env = await newcomer(join(folder, 'home'))
  const clone = join(folder, 'clone')
  await copyClone(clone)
  const beganMs = Date.now()
  const gateway = await started('npm', ['start'], clone, env)
  try {
    const startMs = Date.now() - beganMs
    await ask(gateway, gateway.key)
    return { startMs, totalMs: Date.now() - beganMs, clone, env, said: gateway.said() }
  } finally {
    await gateway.stop()
  }
}

const seconds = ms => `${(ms / 1000).toFixed(1)} s`

async function main() {
  if (!(await reachesRegistry())) throw new Error('npm does not reach its registry')
  await ensure({ types: true })
  const folder = mkdtempSync(join(tmpdir(), 'brigade-minute-'))
  chmodSync(folder, 0o700)
  try {
    const file = await packed(folder)
    console.log(`the packed file has ${(statSync(file).size / 1e6).toFixed(1)} MB; the load of this machine is ${loadavg()[0].toFixed(1)}`)
    const rows = []
    const pack = await packedMinute(file, join(folder, 'pack'))
    rows.push([`packed file to the answered chat (install ${seconds(pack.installMs)}, start ${seconds(pack.startMs)})`, pack.totalMs, bars.packedMs])
    const clone = await cloneMinute(join(folder, 'fresh'))
    rows.push([`fresh clone to the answered chat (npm start ${seconds(clone.startMs)})`, clone.totalMs, bars.cloneMs])
    for (const [what, ms, bar] of rows) console.log(`${ms <= bar ? 'ok  ' : 'OVER'} ${seconds(ms)} of ${seconds(bar)}  ${what}`)
    console.log(`the load of this machine is now ${loadavg()[0].toFixed(1)}`)
    process.exitCode = rows.every(([, ms, bar]) => ms <= bar) ? 0 : 1
  } finally {
    if (process.argv.includes('--keep')) console.log(`kept: ${folder}`)
    else rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

runAsMain(import.meta.url, () =>
  main().catch(error => {
    console.error(`first-minute: ${error.message}`)
    process.exitCode = 1
  }),
)
