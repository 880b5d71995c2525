/**
 * `npm run bench -- --memory` compares the memory API of a gateway with direct use of the AWS SDK, on the same store in the same run. The store is the S3
 * server of the tests in a separate process.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { core, cpuMsOf, startServer } from './child.mjs'
import { startBrigade } from './contenders.mjs'
import { memoryScenarios } from './memory-workload.mjs'
import { addedOf, bestRatioOf, ratioOf, resultsOf, table } from './report.mjs'
import { median } from './statistics.mjs'

export { memoryScenarios }

const program = name => join(root, 'bench', name)
/** The quota is above the bytes that a run writes, including old versions. */
const quotaMb = 1_000_000
/** The lifetime of a token. It is longer than a run. */
const tokenSeconds = 3600
/** The share of the AWS SDK's own throughput that each scenario must reach. */
const bars = { get: 0.8, 'put-new': 0.6, 'put-over': 0.6 }

/** Returns the contenders in the order of a round. All others are compared with the AWS SDK. */
export function memoryContenders(databaseUrl) {
  const brigade = (name, title, isPostgres, isAgent) => ({ name, title, start: world => world.gateway(isPostgres ? databaseUrl : null, isAgent) })
  return [
    { name: 'sdk', title: 'bare AWS SDK', start: world => world.sdk() },
    { name: 'sdk-http', title: 'node:http + AWS SDK passthrough', start: world => world.passthrough() },
    brigade('brigade', 'Brigade, embedded database, key', false, false),
    brigade('brigade-agent', 'Brigade, embedded database, agent token', false, true),
    ...(databaseUrl === null
      ? []
      : [
          brigade('brigade-postgres', 'Brigade, PostgreSQL, key', true, false),
          brigade('brigade-postgres-agent', 'Brigade, PostgreSQL, agent token', true, true),
        ]),
  ]
}

/** Runs the memory bench. Returns the contenders with the results of all rounds. */
export async function measureMemory({ folder, contenders, scenarios, options, say }) {
  mkdirSync(folder, { recursive: true })
  const s3 = await startServer(core.load, [program('s3.mjs'), folder], { ready: /^listening (.+)$/ })
  const world = await makeWorld(JSON.parse(s3.match[1]), folder)
  try {
    const contestants = []
    for (const { name, title, start } of contenders) {
      say(`starting ${title}`)
      contestants.push({ name, title, ...(await start(world)), results: {}, failures: [], answered: 0 })
    }
    for (const contestant of contestants) {
      say(`warm-up: ${contestant.title}`)
      await post(contestant.worker, '/fill', contestant.target)
      for (const scenario of scenarios) await measure(contestant, scenario, 'warm-up', s3, { ...options, warmupMs: 0, durationMs: options.warmupMs * 2 })
    }
    for (let round = 1; round <= options.rounds; round++) {
      for (const scenario of scenarios) {
        for (const contestant of contestants) {
          const result = await measure(contestant, scenario, `round-${round}`, s3, options)
          contestant.results[scenario.name] ??= []
          contestant.results[scenario.name].push(result)
        }
        const figures = contestants.map(({ name, results }) => `${name} ${Math.round(results[scenario.name].at(-1).callsPerS)}`)
        say(`round ${round} of ${options.rounds}: ${scenario.title}: ${figures.join(', ')} calls/s`)
      }
    }
    return contestants.map(({ name, title, results, failures, answered }) => ({ name, title, results, failures, answered }))
  } finally {
    await world.stop()
    await s3.stop()
  }
}

/** Makes the parts that the contenders share: the store, the load over HTTP, and one gateway for each database. */
async function makeWorld(store, folder) {
  const started = []
  const load = async onCore => {
    const server = await startServer(onCore, [program('memory-load.mjs')], { ready: /^listening (\d+)$/ })
    started.push(server)
    return { pid: server.pid, url: `http://127.0.0.1:${server.match[1]}` }
  }
  let http = null
  const overHttp = async (pid, target) => {
    http ??= await load(core.load)
    return { pid, worker: http, target: { prefix: 'agents/bench/', ...target } }
  }
  const gateways = new Map()
  const gatewayOn = async databaseUrl => {
    const known = gateways.get(databaseUrl)
    if (known !== undefined) return known
    const settings = { OUTBOUND_ALLOW: store.hostPort, AGENT_TOKEN_TTL_S: String(tokenSeconds) }
    const name = databaseUrl === null ? 'memory' : 'memory-postgres'
    const gateway = await startBrigade({ upstreamUrl: 'http://127.0.0.1:9', folder, name, databaseUrl, settings })
    started.push(gateway)
    const { endpoint, bucket, accessKey, secretKey } = store
    await manage(gateway, 'PUT', '/v1/me/memory-store', { endpoint, bucket, access_key: accessKey, secret_key: secretKey, quota_mb: quotaMb })
    const { id } = await manage(gateway, 'POST', '/v1/me/agents', { name: 'bench' })
    const { access_token: token } = await manage(gateway, 'POST', `/v1/me/agents/${id}/token`, {})
    const made = { ...gateway, asAgent: { authorization: `Bearer ${token}` } }
    gateways.set(databaseUrl, made)
    return made
  }
  return {
    async sdk() {
      const worker = await load(core.gateway)
      return { pid: worker.pid, worker, target: { prefix: 'bare/', store } }
    },
    async passthrough() {
      const server = await startServer(core.gateway, [program('memory-passthrough.mjs'), JSON.stringify(store)], { ready: /^listening (\d+)$/ })
      started.push(server)
      return overHttp(server.pid, { url: `http://127.0.0.1:${server.match[1]}`, headers: {} })
    },
    async gateway(databaseUrl, isAgent) {
      const { pid, url, headers, asAgent } = await gatewayOn(databaseUrl)
      return overHttp(pid, { url, headers: isAgent ? asAgent : headers })
    },
    async stop() {
      for (const { stop } of started.reverse()) await stop()
    },
  }
}

async function manage({ url, headers }, method, path, body) {
  const reply = await fetch(url + path, { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
  return JSON.parse(text)
}

async function post({ url }, path, job) {
  const reply = await fetch(url + path, { method: 'POST', body: JSON.stringify(job) })
  const text = await reply.text()
  if (!reply.ok) throw new Error(`the load failed: ${text}`)
  return JSON.parse(text)
}

/** Measures one scenario with one contender. Returns the figures of the load generator, and the processor time of the contender. */
async function measure(contestant, scenario, run, s3, { durationMs, warmupMs }) {
  const { pid, worker, target } = contestant
  const job = { ...target, act: scenario.act, connections: scenario.connections, run: `${run}-${scenario.name}-${contestant.name}`, durationMs, warmupMs }
  const before = [pid, s3.pid].map(cpuMsOf)
  const result = await post(worker, '/run', job)
  const [cpuMs, storeCpuMs] = [pid, s3.pid].map((id, index) => (before[index] === null ? null : cpuMsOf(id) - before[index]))
  contestant.answered += result.answered
  if (result.failed > 0) contestant.failures.push(`${scenario.name}: ${result.failed} calls failed, the first with: ${result.failure}`)
  if (cpuMs === null) return result
  const loadCpuMs = storeCpuMs + (worker.pid === pid ? 0 : result.cpuMs)
  return { ...result, cpuUsOfCall: (cpuMs * 1000) / Math.max(1, result.answered), busy: cpuMs / result.wallMs, loadBusy: loadCpuMs / result.wallMs }
}

const callsPerS = result => result.callsPerS
const p50Ms = result => result.latencyMs?.p50
const p99Ms = result => result.latencyMs?.p99
const cpuUs = result => result.cpuUsOfCall
const write = (value, unit) => (value === null ? '' : unit === 'times' ? `${value.toFixed(2)} x` : `${value < 0 ? '' : '+'}${value.toFixed(2)} ms`)

/** Returns the report as Markdown: first the ratios to the AWS SDK, then the measured figures. */
export function memoryReport({ machine, options, isPinned, scenarios }, contestants) {
  const [base, ...others] = contestants
  const lines = scenarios.flatMap(({ name, act, title }) => [
    [`${title}: throughput (bar ${bars[act]})`, 'times', ratioOf(callsPerS, name)],
    ['the same by the best round of each', 'times', bestRatioOf(callsPerS, name)],
    ['p50', 'times', ratioOf(p50Ms, name)],
    ['p99', 'times', ratioOf(p99Ms, name)],
    ['added p50', 'ms', addedOf(p50Ms, name)],
    ['processor time a call', 'times', ratioOf(cpuUs, name)],
  ])
  const ratios = lines.map(([head, unit, value]) => [head, ...others.map(contestant => write(value(contestant, base), unit))])
  const details = [
    ['calls/s', 0, callsPerS],
    ['p50 ms', 2, p50Ms],
    ['p99 ms', 2, p99Ms],
    ['CPU us a call', 0, cpuUs],
    ['busy', 2, result => result.busy],
    ['store and load busy', 2, result => result.loadBusy],
  ]
  const rows = scenarios.flatMap(({ name, title }) =>
    contestants.map(contestant => [
      title,
      contestant.name,
      ...details.map(([, digits, read]) => median(resultsOf(contestant, name).map(result => read(result) ?? Number.NaN))?.toFixed(digits) ?? ''),
    ]),
  )
  return [
    '',
    table([`against the ${base.title}`, ...others.map(({ title }) => title)], ratios),
    '',
    `Medians of ${options.rounds} alternating rounds of ${options.durationMs / 1000} s, each against the bare SDK of its own round. ${machine.cpu}, ${machine.cores} cores, ${isPinned ? 'the side under test on core 0, store and load on core 1' : 'not bound to cores'}, Node ${machine.node}, commit ${machine.commit}, load average ${machine.loadAverage.toFixed(1)} before and ${machine.loadAverageAtEnd.toFixed(1)} after.`,
    '',
    table(['', 'contender', ...details.map(([head]) => head)], rows),
    ...contestants.flatMap(({ title, failures }) => failures.map(failure => `\nFAILED ${title}: ${failure}`)),
  ].join('\n')
}
