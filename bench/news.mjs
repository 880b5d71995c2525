/**
 * `npm run bench -- --news` runs two gateways on one PostgreSQL. It changes a key at the first gateway, and calls the second one in a tight loop until the
 * change has an effect there. It compares this time, with NOTIFY, with the promise "within 60 s".
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { core, runToEnd, startServer } from './child.mjs'
import { operatorFile } from './workload.mjs'

/** The run fails when a change has no effect within this time. */
const promisedMs = 60_000
/** Number of calls that the second gateway answers with 200 before the change, so that it has the key in its cache. */
const settleCalls = 20

/** The changes at the first gateway, and the answer of the second gateway that shows each change. */
const changes = [
  { name: 'revoke', title: 'key revoked', status: 401, method: 'DELETE', path: id => `/me/keys/${id}` },
  { name: 'disable', title: 'key disabled', status: 401, method: 'PATCH', path: id => `/me/keys/${id}`, body: { enabled: false } },
  { name: 'limit', title: 'rpm_limit set to 0', status: 429, method: 'PATCH', path: id => `/me/keys/${id}`, body: { rpm_limit: 0 } },
  { name: 'rotate', title: 'secret rotated without overlap', status: 401, method: 'POST', path: id => `/me/keys/${id}/rotate`, body: { overlap_days: 0 } },
]

/** Starts the gateways, measures `samples` of each change and returns the table's rows. */
export async function measureNews({ folder, databaseUrl, samples, say }) {
  const { env, gateways } = await startGateways(folder, databaseUrl)
  try {
    const [here, there] = gateways.map(({ match }) => match[1])
    const cookie = await signIn(here, env, folder)
    const rows = []
    for (const change of changes) {
      const seen = []
      for (let i = 0; i < samples; i++) seen.push(await measureOne(change, here, there, cookie))
      rows.push({ ...change, fromRequest: spread(seen.map(one => one.fromRequestMs)), afterReply: spread(seen.map(one => one.afterReplyMs)) })
      say(`${change.title}: ${samples} times`)
    }
    return rows
  } finally {
    for (const gateway of gateways) await gateway.stop()
  }
}

/** Returns the table as Markdown. */
export function newsTable(rows, samples) {
  const cell = ({ median, p95, max }) => `${median.toFixed(1)} / ${p95.toFixed(1)} / ${max.toFixed(1)}`
  return [
    `${samples} changes of each kind at one process, until another process of the same PostgreSQL acts on it; ms, median / p95 / longest.`,
    '',
    '| change | from the request on | after its reply |',
    '|---|---|---|',
    ...rows.map(row => `| ${row.title} | ${cell(row.fromRequest)} | ${cell(row.afterReply)} |`),
  ].join('\n')
}

async function startGateways(folder, databaseUrl) {
  const configFile = join(folder, 'news.json')
  writeFileSync(configFile, JSON.stringify(operatorFile('http://127.0.0.1:9')))
  const env = { HOST: '127.0.0.1', PORT: '0', CONFIG_FILE: configFile, SANDBOX: 'off', LOCAL_SERVERS: 'off', LOG_LEVEL: 'error' }
  const shared = { ...env, DATABASE_URL: databaseUrl, MASTER_KEY: randomBytes(32).toString('base64'), DATA_DIR: join(folder, 'news-0') }
  const gateways = []
  for (const [i, onCore] of [core.gateway, core.load].entries()) {
    const dataDir = join(folder, `news-${i}`)
    mkdirSync(dataDir, { recursive: true })
    const options = { env: { ...shared, DATA_DIR: dataDir }, cwd: folder, ready: /listens on (http:\S+)/ }
    gateways.push(await startServer(onCore, [join(root, 'dist', 'main.js')], options))
  }
  return { env: { ...shared, DATA_DIR: join(folder, 'news-admin') }, gateways }
}

/** Returns the cookie of the owner of a new organisation. */
async function signIn(url, env, folder) {
  const admin = async (...args) =>
    JSON.parse(await runToEnd(core.load, [join(root, 'dist', 'cli', 'brigade.js'), 'admin', ...args, '--json'], { env, cwd: folder }))
  const email = `bench-${randomBytes(6).toString('hex')}@example.test`
  await admin('create', '--email', email, '--org', 'Bench')
  const link = JSON.stringify(await admin('sign-in', '--email', email))
  const token = /[?&]token=([\w-]+)/.exec(link)?.[1]
  if (token === undefined) throw new Error('the sign-in link has no token')
  const reply = await fetch(`${url}/auth/link`, { method: 'POST', body: new URLSearchParams({ token }), redirect: 'manual' })
  const cookie = reply.headers.getSetCookie().find(value => value.startsWith('br_session='))
  if (cookie === undefined) throw new Error(`no sign-in: ${reply.status} ${await reply.text()}`)
  return cookie.split(';')[0]
}

async function measureOne({ method, path, body, status }, here, there, cookie) {
  const manage = async (verb, at, value) => {
    const reply = await fetch(here + at, {
      method: verb,
      headers: { cookie, 'content-type': 'application/json' },
      ...(verb === 'DELETE' ? {} : { body: JSON.stringify(value ?? {}) }),
    })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${verb} ${at}: ${reply.status} ${text}`)
    return JSON.parse(text)
  }
  const { id, key } = await manage('POST', '/me/keys', { rpm_limit: null })
  const ask = async () => {
    const reply = await fetch(`${there}/v1/me/whoami`, { headers: { authorization: `Bearer ${key}` } })
    await reply.text()
    return reply.status
  }
  for (let i = 0; i < settleCalls; i++) if ((await ask()) !== 200) throw new Error('the other process does not take the key')
  const startedMs = performance.now()
  let repliedMs = Number.POSITIVE_INFINITY
  const changed = manage(method, path(id), body).then(() => {
    repliedMs = performance.now()
  })
  for (;;) {
    const answer = await ask()
    const nowMs = performance.now()
    if (answer === status) {
      await changed
      return { fromRequestMs: nowMs - startedMs, afterReplyMs: Math.max(0, nowMs - repliedMs) }
    }
    if (nowMs - startedMs > promisedMs) throw new Error(`the other process did not hear of it within ${promisedMs / 1000} s`)
  }
}

function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = share => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  return { median: at(0.5), p95: at(0.95), max: sorted.at(-1) }
}
