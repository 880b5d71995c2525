/**
 * `npm run bench -- --revokes` runs three gateways on one PostgreSQL. An agent has a stream at the second gateway and one at the third, and is revoked at
 * the first. The bench measures the time until the other two gateways refuse the agent's next call and cut its stream. It measures once with notifications,
 * and once with only the polling of the control log.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { core, runToEnd, startServer } from './child.mjs'
import { fromHarness } from './from-test.mjs'
import { percentilesOf } from './statistics.mjs'
import { operatorFile } from './workload.mjs'

/** The run fails when a revocation has no effect within this time. */
const boundMs = 30_000
const promisedMs = { heard: 1000, deaf: 2000 }
const program = name => join(root, 'bench', name)

/** Measures `samples` revocations with and without notifications. Returns the rows of the table. */
export async function measureRevokes({ folder, databaseUrl, samples, say }) {
  const { startDeafProxy } = await fromHarness('deaf-proxy.ts', folder)
  // The streams of this upstream never end by themselves, so they end only when a gateway cuts them.
  const streamArgs = ['--chunks', '1', '--slow-chunks', '1000000', '--slow-interval-ms', '1000']
  const upstream = await startServer(core.load, [program('upstream.mjs'), ...streamArgs], { ready: /^listening (\d+)$/ })
  const fleet = await startFleet(folder, databaseUrl, `http://127.0.0.1:${upstream.match[1]}`, startDeafProxy)
  try {
    const rows = []
    for (const way of ['heard', 'deaf']) {
      for (const proxy of fleet.proxies) proxy.deafen(way === 'deaf')
      const seen = []
      for (let i = 0; i < samples; i++) {
        seen.push(...(await measureOne(fleet, `${way}-${i}`)))
        if ((i + 1) % 50 === 0) say(`${way === 'heard' ? 'with notifications' : 'without notifications'}: ${i + 1} of ${samples} revokes`)
      }
      for (const what of ['refused', 'cut'])
        rows.push({
          way,
          what,
          samples: seen.length,
          fromRequestMs: percentilesOf(seen.map(one => one[what] - one.sentMs)),
          afterReplyMs: percentilesOf(seen.map(one => Math.max(0, one[what] - one.repliedMs))),
        })
    }
    if (fleet.proxies.some(({ swallowed }) => swallowed === 0)) throw new Error('no notification was swallowed: the second half measured nothing')
    return rows
  } finally {
    await fleet.stop()
    await upstream.stop()
  }
}

/** Returns the table as Markdown. */
export function revokesTable(rows, samples, { machine }) {
  const cell = ({ p50, p99, max }) => `${p50.toFixed(1)} / ${p99.toFixed(1)} / ${max.toFixed(1)}`
  const what = { refused: 'first call refused', cut: 'last frame of the stream' }
  const ways = { heard: 'NOTIFY', deaf: 'LISTEN blocked, poll of 1 s' }
  return [
    `${samples} revokes each way at one of three processes, until each of the two others refuses the next call and has ended the running stream; ms, p50 / p99 / longest.`,
    '',
    '| on another process | from the request on | after its reply | promised |',
    '|---|---:|---:|---:|',
    ...rows.map(
      row =>
        `| ${ways[row.way]}: ${what[row.what]} | ${cell(row.fromRequestMs)} | ${cell(row.afterReplyMs)} | ${row.way === 'heard' ? 'p99' : 'all'} < ${promisedMs[row.way]} |`,
    ),
    '',
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, commit ${machine.commit}, load average ${machine.loadAverage.toFixed(1)} before and ${machine.loadAverageAtEnd.toFixed(1)} after.`,
  ].join('\n')
}

async function startFleet(folder, databaseUrl, upstreamUrl, startDeafProxy) {
  const configFile = join(folder, 'revokes.json')
  writeFileSync(configFile, JSON.stringify(operatorFile(upstreamUrl)))
  const shared = {
    HOST: '127.0.0.1',
    PORT: '0',
    BASE_URL: 'http://brigade.bench',
    CONFIG_FILE: configFile,
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    LOG_LEVEL: 'error',
    MASTER_KEY: randomBytes(32).toString('base64'),
  }
  const target = new URL(databaseUrl)
  const proxies = []
  const gateways = []
  for (const [i, onCore] of [core.gateway, core.load, null].entries()) {
    const dataDir = join(folder, `revokes-${i}`)
    mkdirSync(dataDir, { recursive: true })
    const way = new URL(target)
    if (i > 0) {
      const proxy = await startDeafProxy({ host: target.hostname, port: Number(target.port) })
      proxies.push(proxy)
      way.host = `127.0.0.1:${proxy.port}`
    }
    const port = String(await freePort())
    const env = { ...shared, PORT: port, DATABASE_URL: way.href, DATA_DIR: dataDir }
    const gateway = await startServer(onCore, [join(root, 'dist', 'main.js')], { env, cwd: folder, ready: /listens on (http:\S+)/ })
    gateways.push({ ...gateway, url: `http://127.0.0.1:${port}` })
  }
  const args = ['admin', 'create', '--json', '--email', `bench-${randomBytes(6).toString('hex')}@example.test`, '--org', 'Bench', '--rpm', '100000000']
  const env = { ...shared, DATABASE_URL: databaseUrl, DATA_DIR: join(folder, 'revokes-admin') }
  const { key } = JSON.parse(await runToEnd(core.load, [join(root, 'dist', 'cli', 'brigade.js'), ...args], { env, cwd: folder }))
  return {
    key,
    proxies,
    urls: gateways.map(({ url }) => url),
    async stop() {
      for (const { stop } of gateways) await stop()
      for (const proxy of proxies) await proxy.close()
    },
  }
}

async function freePort() {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address()
  await new Promise(done => server.close(done))
  return port
}

/** Measures the revocation of one agent with two streams. Returns for each of the two other processes what it did and when. */
async function measureOne({ key, urls: [here, ...others] }, name) {
  const manage = async (path, body) => {
    const reply = await fetch(here + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${text}`)
    return JSON.parse(text)
  }
  const { id } = await manage('/v1/me/agents', { name })
  const { access_token: token } = await manage(`/v1/me/agents/${id}/token`, {})
  const streams = await Promise.all(others.map(url => openStream(url, token)))
  const sentMs = performance.now()
  let repliedMs = Number.POSITIVE_INFINITY
  const revoked = manage(`/v1/me/agents/${id}/revoke`, {}).then(() => {
    repliedMs = performance.now()
  })
  const seen = await Promise.all(
    others.map(async (url, index) => {
      const [refused, cut] = await Promise.all([refusedAt(url, token, sentMs), streams[index].cutAt()])
      return { refused, cut }
    }),
  )
  await revoked
  return seen.map(one => ({ ...one, sentMs, repliedMs }))
}

/** Returns a stream after its first chunk has arrived. */
async function openStream(url, token) {
  const body = JSON.stringify({ model: 'bench-slow', stream: true, messages: [{ role: 'user', content: 'Go on until somebody stops you.' }] })
  const signal = AbortSignal.timeout(boundMs * 2)
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
    signal,
  })
  if (reply.status !== 200) throw new Error(`no stream: ${reply.status} ${await reply.text()}`)
  const reader = reply.body.getReader()
  let text = Buffer.from((await reader.read()).value).toString('utf8')
  return {
    async cutAt() {
      for (;;) {
        const { done, value } = await reader.read()
        const nowMs = performance.now()
        if (done) throw new Error(`the stream ended without the frame of a revoke: ${text.slice(-300)}`)
        text += Buffer.from(value).toString('utf8')
        if (!text.includes('"agent_revoked"')) continue
        await reader.cancel()
        return nowMs
      }
    },
  }
}

async function refusedAt(url, token, sentMs) {
  for (;;) {
    const reply = await fetch(`${url}/v1/me/whoami`, { headers: { authorization: `Bearer ${token}` } })
    await reply.arrayBuffer()
    const nowMs = performance.now()
    if (reply.status === 401) return nowMs
    if (nowMs - sentMs > boundMs) throw new Error(`a process did not hear of a revoke within ${boundMs / 1000} s`)
  }
}
