/** Starts two gateways on one PostgreSQL, with an organisation whose key may call the approved tools of many MCP servers. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { core, runToEnd, startServer } from './child.mjs'
import { operatorFile } from './workload.mjs'

const priceInr = 0.01
const unlimited = 100_000_000

/** Starts the gateways and registers `servers` servers of the upstream with all of their tools, and one more that fails. Returns what a measurement needs. */
export async function startToolOrg({ folder, databaseUrl, upstreamUrl, servers, say }) {
  const configFile = join(folder, 'tools.json')
  writeFileSync(configFile, JSON.stringify(operatorFile('http://127.0.0.1:9')))
  const shared = {
    HOST: '127.0.0.1',
    PORT: '0',
    CONFIG_FILE: configFile,
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    LOG_LEVEL: 'error',
    ORG_RPM: '0',
    ORG_RUNNING: '0',
    CONSOLE_RPM: '100000',
    OUTBOUND_ALLOW: new URL(upstreamUrl).host,
    CIRCUIT_OPEN_MS: '600000',
    DATABASE_URL: databaseUrl,
    MASTER_KEY: randomBytes(32).toString('base64'),
  }
  const gateways = []
  for (const [i, onCore] of [core.gateway, core.load].entries()) {
    const dataDir = join(folder, `tools-${i}`)
    mkdirSync(dataDir, { recursive: true })
    const options = { env: { ...shared, DATA_DIR: dataDir }, cwd: folder, isProbed: i === 0, ready: /listens on (http:\S+)/ }
    const started = await startServer(onCore, [join(root, 'dist', 'main.js')], options)
    gateways.push({ ...started, url: started.match[1] })
  }
  const [here] = gateways
  const cookie = await signedIn(here.url, { ...shared, DATA_DIR: join(folder, 'tools-admin') }, folder)
  const manage = (method, path, body) => managed(here.url, cookie, method, path, body)
  const slugs = Array.from({ length: servers }, (_, i) => `s${String(i).padStart(2, '0')}`)
  const registered = new Map()
  for (const slug of [...slugs, 'bad']) registered.set(slug, await register(manage, slug, `${upstreamUrl}/${slug}`))
  say(`${registered.size} servers are registered, and their tools are approved`)
  const { id, key } = await manage('POST', '/me/keys', { rpm_limit: null })
  await manage('PATCH', `/me/keys/${id}`, { allowed_tools: [...registered.keys()].map(slug => `${slug}__*`) })
  return {
    gateways,
    manage,
    registered,
    headers: { authorization: `Bearer ${key}` },
    async stop() {
      for (const { stop } of gateways) await stop()
    },
  }
}

/** Returns the cookie of the owner of a new organisation with budgets and limits that apply to every call. No run reaches them. */
async function signedIn(url, env, folder) {
  const admin = async words =>
    JSON.parse(await runToEnd(core.load, [join(root, 'dist', 'cli', 'brigade.js'), 'admin', ...words, '--json'], { env, cwd: folder }))
  const email = `bench-${randomBytes(6).toString('hex')}@example.test`
  await admin(['create', '--email', email, '--org', 'Bench', '--rpm', String(unlimited), '--org-budget-inr', String(unlimited / 10)])
  const token = /[?&]token=([\w-]+)/.exec(JSON.stringify(await admin(['sign-in', '--email', email])))?.[1]
  if (token === undefined) throw new Error('the sign-in link has no token')
  const reply = await fetch(`${url}/auth/link`, { method: 'POST', body: new URLSearchParams({ token }), redirect: 'manual' })
  const cookie = reply.headers.getSetCookie().find(value => value.startsWith('br_session='))
  if (cookie === undefined) throw new Error(`no sign-in: ${reply.status} ${await reply.text()}`)
  return cookie.split(';')[0]
}

async function managed(url, cookie, method, path, body) {
  const reply = await fetch(url + path, {
    method,
    headers: { cookie, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
  return JSON.parse(text)
}

/** Registers a server and approves all of its tools. Returns its id and the hashes by name. */
async function register(manage, slug, url) {
  const { id } = (await manage('POST', '/me/tool-servers', { name: slug, slug, url, price_inr_per_call: priceInr })).server
  const tools = []
  for (let cursor = ''; cursor !== null; ) {
    const page = await manage('GET', `/me/tool-servers/${id}/tools?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`)
    tools.push(...page.tools.map(({ name, hash }) => ({ name, hash })))
    cursor = page.next_cursor
  }
  await manage('POST', `/me/tool-servers/${id}/tools/approve`, { tools })
  return { id, hashes: new Map(tools.map(({ name, hash }) => [name, hash])) }
}
