/**
 * `npm run bench -- --tools` measures the tool gateway: what it adds to a call of a tool, its throughput, a thousand slow calls, the list of 2,000 tools, the
 * cut of running calls in two processes, and the refusal while a circuit is open. README.md describes it.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { Pool } from 'undici'
import { core, rssMibOf, startServer } from './child.mjs'
import { table } from './report.mjs'
import { measure, program } from './rounds.mjs'
import { median, percentilesOf } from './statistics.mjs'
import { startToolOrg } from './tool-org.mjs'

const allBars = JSON.parse(readFileSync(new URL('bars.json', import.meta.url), 'utf8'))
const servers = 40
const toolsOfServer = 50
const slowCalls = 1000
/** PostgreSQL shows the transactions of a connection after at most this time. */
const statisticsMs = 1500

/** The figures of a run: the name in the JSON, the heading, the unit, and the number of digits. */
const figures = [
  ['addedP50Ms', '1 KiB, 1 connection: added p50', 'ms', 2],
  ['addedP99Ms', '1 KiB, 1 connection: added p99', 'ms', 2],
  ['transactionsOfCall', 'transactions of the database a warm call, regular jobs included', '', 3],
  ['callsPerS', 'short calls, 50 connections', 'calls/s', 0],
  ['slowFailed', '1,000 concurrent calls of 1 s: failed', 'calls', 0],
  ['slowWallMs', '1,000 concurrent calls of 1 s: until the last reply', 'ms', 0],
  ['slowRssMib', '1,000 concurrent calls of 1 s: more resident memory', 'MiB', 0],
  ['slowLoopDelayP99Ms', '1,000 concurrent calls of 1 s: loop delay p99', 'ms', 1],
  ['listP95Ms', 'tools/list, 2,000 tools in pages of 200: all pages, p95', 'ms', 1],
  ['listPageP95Ms', 'tools/list: one page, p95', 'ms', 1],
  ['cutHereP99Ms', 'block of a tool until its call ends, same process, p99', 'ms', 1],
  ['cutThereP99Ms', 'block of a tool until its call ends, another process, p99', 'ms', 1],
  ['refusedP99Ms', 'refusal while the circuit is open, p99', 'ms', 2],
]

/** Measures everything. Returns the figures by name, and the failures. */
export async function measureTools({ folder, databaseUrl, options, say }) {
  const upstream = await startServer(core.load, [program('tool-upstream.mjs'), '--tools', String(toolsOfServer)], { ready: /^listening (\d+)$/ })
  const upstreamUrl = `http://127.0.0.1:${upstream.match[1]}`
  const org = await startToolOrg({ folder, databaseUrl, upstreamUrl, servers, say })
  try {
    const [here] = org.gateways
    const gateway = { ...here, headers: org.headers, answered: 0, failures: [] }
    const direct = { url: upstreamUrl, pid: upstream.pid, headers: {}, answered: 0, failures: [] }
    const found = {
      ...(await calls({ gateway, direct, upstream, options, databaseUrl, say })),
      ...(await slow({ gateway, upstream, options, say })),
      ...(await lists(org, options, say)),
      ...(await cuts(org, upstreamUrl, options, say)),
      ...(await refusals(org, options, say)),
    }
    return { found, failures: [...gateway.failures, ...direct.failures] }
  } finally {
    await org.stop()
    await upstream.stop()
  }
}

/** Returns the limits of bars.json for tools, each with a verdict. */
export function toolVerdicts(found) {
  return allBars
    .filter(({ run }) => run === 'tools')
    .map(({ measure: name, least = null, most = null }) => {
      const figure = figures.find(([known]) => known === name)
      if (figure === undefined) throw new Error(`bars.json names "${name}", which is not measured`)
      const value = found[name] ?? null
      const isMet = value !== null && (least === null || value >= least) && (most === null || value <= most)
      return { measure: name, least, most, value, verdict: isMet ? 'met' : 'missed' }
    })
}

/** Returns the table as Markdown. */
export function toolsTable({ found, failures }, { options, machine, isPinned }) {
  const text = (value, unit, digits) => (value === null ? 'not measured' : `${value.toFixed(digits)} ${unit}`.trim())
  const rows = toolVerdicts(found).map(({ measure: name, least, most, value, verdict }) => {
    const [, head, unit, digits] = figures.find(([known]) => known === name)
    return [head, `${least === null ? 'at most' : 'at least'} ${least ?? most} ${unit}`.trim(), text(value, unit, digits), verdict]
  })
  const place = isPinned ? 'gateway on core 0, server and load on core 1' : 'not bound to cores'
  return [
    table(['tools of MCP servers', 'bar', 'measured', 'verdict'], rows),
    '',
    `${servers} servers with ${toolsOfServer} tools each, on PostgreSQL. Medians of ${options.rounds} rounds of ${options.durationMs / 1000} s. ${machine.cpu}, ${machine.cores} cores, ${place}, Node ${machine.node}, commit ${machine.commit}, load average ${machine.loadAverage.toFixed(1)} before and ${machine.loadAverageAtEnd.toFixed(1)} after.`,
    ...failures.map(failure => `\nFAILED ${failure}`),
  ].join('\n')
}

const viaGateway = (name, connections, more = {}) => ({
  name: `${name}-${connections}`,
  title: name,
  connections,
  path: `/v1/tools/s00__${name}/call`,
  body: JSON.stringify({ arguments: { text: 'a few words', limit: 3 } }),
  ...more,
})
const directCall = {
  name: 'direct',
  title: 'direct',
  connections: 1,
  path: '/s00',
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'a few words', limit: 3 } } }),
}

/** Added latency, transactions and throughput. Gateway and direct call take turns. */
async function calls({ gateway, direct, upstream, options, databaseUrl, say }) {
  const one = viaGateway('echo', 1)
  for (const connections of [1, 50]) await measure(gateway, upstream, viaGateway('echo', connections), { durationMs: options.warmupMaxMs / 2, warmupMs: 0 })
  const rounds = []
  for (let round = 1; round <= options.rounds; round++) {
    const bare = await measure(direct, upstream, directCall, options)
    const before = await transactions(databaseUrl)
    const through = await measure(gateway, upstream, one, options)
    const used = (await transactions(databaseUrl)) - before
    const fast = await measure(gateway, upstream, viaGateway('echo', 50), options)
    rounds.push({
      addedP50Ms: through.latencyMs.p50 - bare.latencyMs.p50,
      addedP99Ms: through.latencyMs.p99 - bare.latencyMs.p99,
      transactionsOfCall: used / through.answered,
      callsPerS: fast.callsPerS,
    })
    say(`round ${round} of ${options.rounds}: added p50 ${rounds.at(-1).addedP50Ms.toFixed(2)} ms, ${Math.round(fast.callsPerS)} calls/s`)
  }
  return Object.fromEntries(Object.keys(rounds[0]).map(name => [name, median(rounds.map(round => round[name]))]))
}

/** Returns the committed transactions of the database so far, without those of this function. */
async function transactions(databaseUrl) {
  await pause(statisticsMs)
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query(`select xact_commit::int as count from pg_stat_database where datname = current_database()`)
  await client.end()
  return rows[0].count
}

async function slow({ gateway, upstream, options, say }) {
  const rounds = []
  for (let round = 1; round <= options.slowRounds; round++) {
    const before = rssMibOf(gateway.pid)
    const result = await measure(gateway, upstream, viaGateway('slow', slowCalls, { once: true }), options)
    rounds.push({
      slowFailed: result.failed,
      slowWallMs: result.wallMs,
      slowRssMib: result.rssPeakMib - before,
      slowLoopDelayP99Ms: result.loopDelayP99Ms,
    })
    say(`${slowCalls} concurrent calls of 1 s: ${Math.round(result.wallMs)} ms, ${result.failed} failed`)
  }
  return Object.fromEntries(Object.keys(rounds[0]).map(name => [name, median(rounds.map(round => round[name]))]))
}

const p95 = values => values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.95) - 1]

async function lists({ gateways: [{ url }], headers }, { toolSamples }, say) {
  const pool = new Pool(url, { connections: 1 })
  const sent = { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
  const pageOf = async cursor => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: cursor === undefined ? {} : { cursor } })
    const reply = await pool.request({ path: '/mcp?toolsets=tools', method: 'POST', headers: sent, body })
    const text = await reply.body.text()
    const { result } = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1))
    if (result === undefined) throw new Error(`tools/list: ${reply.statusCode} ${text.slice(0, 300)}`)
    return result
  }
  const pages = []
  const whole = []
  for (let i = -5; i < toolSamples; i++) {
    let count = 0
    let spentMs = 0
    let cursor
    do {
      const startMs = performance.now()
      const page = await pageOf(cursor)
      const tookMs = performance.now() - startMs
      spentMs += tookMs
      count += page.tools.length
      cursor = page.nextCursor
      if (i >= 0) pages.push(tookMs)
    } while (cursor !== undefined)
    if (count < servers * toolsOfServer) throw new Error(`the list has ${count} tools`)
    if (i >= 0) whole.push(spentMs)
  }
  await pool.destroy()
  say(`the whole list: p95 ${p95(whole).toFixed(1)} ms`)
  return { listP95Ms: p95(whole), listPageP95Ms: p95(pages) }
}

/** Begins a call of `wait` at both processes, and blocks the tool at the first. Measures from the request of the block to the end of each call. */
async function cuts({ gateways, headers, manage, registered }, upstreamUrl, { toolSamples }, say) {
  const { id, hashes } = registered.get('s00')
  const name = 's00__wait'
  const spentMs = gateways.map(() => [])
  for (let i = 0; i < toolSamples; i++) {
    const before = await waitsAt(upstreamUrl)
    const ends = gateways.map(({ url }) => waiting(url, headers, name))
    // A call that fails early ends the run here.
    const early = Promise.race(ends).then(() => Promise.reject(new Error('a call ended before its tool was blocked')))
    const arrived = (async () => {
      while ((await waitsAt(upstreamUrl)) < before + ends.length) await pause(10)
    })()
    early.catch(() => undefined)
    await Promise.race([arrived, early])
    const startMs = performance.now()
    await manage('POST', `/me/tool-servers/${id}/tools/block`, { tools: [name] })
    for (const [index, atMs] of (await Promise.all(ends)).entries()) spentMs[index].push(atMs - startMs)
    await manage('POST', `/me/tool-servers/${id}/tools/approve`, { tools: [{ name, hash: hashes.get(name) }] })
    for (const { url } of gateways) await callable(url, headers, name)
  }
  const [here, there] = spentMs.map(percentilesOf)
  say(`cut: ${here.p99.toFixed(1)} ms in the same process, ${there.p99.toFixed(1)} ms in another`)
  return { cutHereP99Ms: here.p99, cutThereP99Ms: there.p99 }
}

/** Returns the number of calls of `wait` that the server has received. */
const waitsAt = async url => Number(await (await fetch(url)).text())

/** Makes a call that waits. Resolves with the time at which it was cut. */
async function waiting(url, headers, name) {
  const response = await fetch(`${url}/v1/tools/${name}/call`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{}' })
  const text = await response.text()
  if (!text.includes('tool_blocked')) throw new Error(`the call ended without the reason: ${response.status} ${text.slice(0, 300)}`)
  return performance.now()
}

async function callable(url, headers, name) {
  for (;;) {
    const reply = await fetch(`${url}/v1/tools/${name}`, { headers })
    await reply.arrayBuffer()
    if (reply.ok) return
    await pause(10)
  }
}

async function refusals({ gateways: [{ url }], headers }, { toolSamples }, say) {
  const pool = new Pool(url, { connections: 1 })
  const call = async () => {
    const startMs = performance.now()
    const reply = await pool.request({
      path: '/v1/tools/bad__echo/call',
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{}',
    })
    const text = await reply.body.text()
    if (reply.statusCode !== 503) throw new Error(`a call of a failing server: ${reply.statusCode} ${text.slice(0, 300)}`)
    return { tookMs: performance.now() - startMs, isRefused: text.includes('failed several times in a row') }
  }
  while (!(await call()).isRefused);
  const spentMs = []
  for (let i = 0; i < toolSamples * 10; i++) spentMs.push((await call()).tookMs)
  await pool.destroy()
  const { p99 } = percentilesOf(spentMs)
  say(`refusal while the circuit is open: p99 ${p99.toFixed(2)} ms`)
  return { refusedP99Ms: p99 }
}
