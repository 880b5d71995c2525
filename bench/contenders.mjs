/** The contenders, which are the gateways and proxies that the bench compares. It says how each is started on the gateway's core, and how it is called. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { root } from '../scripts/paths.mjs'
import { nodeFlags } from '../scripts/run.mjs'
import { core, runToEnd, startServer } from './child.mjs'
import { findPortkey } from './portkey.mjs'
import { costUinrOfCall, operatorFile } from './workload.mjs'

const program = name => join(root, 'bench', name)
const billDeadlineMs = 30_000

/** Settings that switch billing on, so that every call reads the prepaid balance and is charged to it. The payment provider is never called. */
export const billingOn = { RAZORPAY_KEY_ID: 'bench', RAZORPAY_KEY_SECRET: 'bench' }
/** The maximum credit that the operator may give in one step. No run uses it up. */
const creditInr = 10_000_000

/**
 * Returns the contenders that can run here, in the order of a round. `databaseUrl` adds Brigade on that PostgreSQL, and `isPrepaid` switches billing
 * on.
 */
export function contendersOf({ databaseUrl, isPrepaid }) {
  const portkey = findPortkey()
  const settings = isPrepaid ? billingOn : {}
  return [
    { name: 'passthrough', title: 'node:http + undici passthrough', start: ({ upstreamUrl }) => startPassthrough('passthrough.mjs', upstreamUrl) },
    { name: 'express', title: 'express + undici passthrough', start: ({ upstreamUrl }) => startPassthrough('express-passthrough.mjs', upstreamUrl) },
    {
      name: 'brigade',
      title: 'Brigade, governed, embedded database',
      start: options => startBrigade({ ...options, name: 'brigade', databaseUrl: null, settings }),
    },
    ...(databaseUrl === null
      ? []
      : [
          {
            name: 'brigade-postgres',
            title: 'Brigade, governed, PostgreSQL',
            start: options => startBrigade({ ...options, name: 'brigade-postgres', databaseUrl, settings }),
          },
          {
            name: 'brigade-workers',
            title: 'Brigade, governed, PostgreSQL, 2 workers',
            start: options => startBrigade({ ...options, name: 'brigade-workers', databaseUrl, settings: { ...settings, WORKERS: '2' } }),
          },
        ]),
    ...(portkey === null
      ? []
      : [
          {
            name: 'portkey',
            title: `Portkey gateway ${portkey.version}, ungoverned`,
            lacks: ['messages'],
            start: options => startPortkey({ ...options, portkey }),
          },
        ]),
  ]
}

async function startPassthrough(file, upstreamUrl) {
  const { match, ...started } = await startServer(core.gateway, [program(file), upstreamUrl], { ready: /^listening (\d+)$/, isProbed: true })
  return { ...started, url: `http://127.0.0.1:${match[1]}`, headers: {} }
}

/** Starts the built program of a checkout, with an organisation. Its budgets and limits apply to every call, but the run does not reach them. */
export async function startBrigade({ upstreamUrl, folder, name, databaseUrl, settings = {}, checkout = root }) {
  const dataDir = join(folder, name)
  const configFile = join(folder, `${name}.json`)
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(configFile, JSON.stringify(operatorFile(upstreamUrl)))
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    DATA_DIR: dataDir,
    CONFIG_FILE: configFile,
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    LOG_LEVEL: 'error',
    ORG_RPM: '0',
    ORG_RUNNING: '0',
    ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl, MASTER_KEY: randomBytes(32).toString('base64') }),
    ...settings,
  }
  const { match, ...started } = await startServer(core.gateway, [...nodeFlags, join(checkout, 'dist', 'main.js')], {
    env,
    cwd: folder,
    isProbed: true,
    ready: /listens on (http:\S+)/,
  })
  const flags = {
    email: `bench-${randomBytes(6).toString('hex')}@example.test`,
    org: 'Bench',
    rpm: 100_000_000,
    daily: 100_000_000,
    'org-budget-inr': 10_000_000,
    'key-budget-inr': 10_000_000,
  }
  const args = ['admin', 'create', '--json', ...Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, String(value)])]
  const brigade = words => runToEnd(core.load, [join(checkout, 'dist', 'cli', 'brigade.js'), ...words], { env, cwd: folder })
  const { key, org_id: orgId } = JSON.parse(await brigade(args))
  if ('RAZORPAY_KEY_ID' in settings) await brigade(['admin', 'credit', 'grant', '--org', String(orgId), '--inr', String(creditInr), '--ref', 'bench'])
  const headers = { authorization: `Bearer ${key}` }
  const url = match[1]
  return { ...started, url, headers, checkBill: answered => checkBill(url, headers, answered) }
}

/** Waits until the usage report contains every answered call with its exact price. Throws when this takes too long. */
async function checkBill(url, headers, answered) {
  const wanted = { requests: answered, cost_uinr: answered * costUinrOfCall }
  const deadlineMs = Date.now() + billDeadlineMs
  for (;;) {
    const reply = await fetch(`${url}/v1/usage`, { headers })
    const text = await reply.text()
    const totals = reply.ok ? JSON.parse(text).totals : null
    if (totals?.requests === wanted.requests && totals.cost_uinr === wanted.cost_uinr) return wanted
    if (Date.now() > deadlineMs) throw new Error(`the bill is not ${JSON.stringify(wanted)}: ${totals === null ? text : JSON.stringify(totals)}`)
    await pause(200)
  }
}

async function startPortkey({ upstreamUrl, portkey }) {
  const port = await freePort()
  const { pid, stop } = await startServer(core.gateway, [portkey.script, `--port=${port}`, '--headless'], { ready: /Ready for connections/ })
  const headers = { authorization: 'Bearer bench', 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstreamUrl}/v1` }
  return { pid, stop, url: `http://127.0.0.1:${port}`, headers }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}
