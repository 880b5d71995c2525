/**
 * `npm run bench`: what Brigade adds to a call, beside passthroughs without any governance, on this machine and in one run. See
 * README.md. The table goes to stdout, progress to stderr, every number to results/latest.json.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { startPostgres } from '../scripts/postgres.mjs'
import { core, cpuMsOf, isPinned, killAll, rssMibOf, runToEnd, startServer } from './child.mjs'
import { contendersOf } from './contenders.mjs'
import { machine } from './machine.mjs'
import { measureMemory, memoryContenders, memoryReport, memoryScenarios } from './memory.mjs'
import { measureNews, newsTable } from './news.mjs'
import { installPortkey } from './portkey.mjs'
import { markdown, summarize } from './report.mjs'
import { measureRevokes, revokesTable } from './revokes.mjs'
import { chunksOfStream, scenariosOf } from './workload.mjs'

const sampleIntervalMs = 200
const slowChunks = 20

const program = name => join(root, 'bench', name)
const say = text => process.stderr.write(`${text}\n`)

function readOptions() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      scenarios: { type: 'string' },
      'slow-streams': { type: 'string', default: '2000' },
      news: { type: 'boolean', default: false },
      memory: { type: 'boolean', default: false },
      revokes: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      prepaid: { type: 'boolean', default: false },
      'install-portkey': { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const number = (name, text, min) => {
    if (/^\d+(\.\d+)?$/.test(text) && Number(text) >= min) return Number(text)
    throw new Error(`--${name} must be a number of at least ${min}, not "${text}"`)
  }
  const { quick } = values
  return {
    quick,
    rounds: number('rounds', values.rounds ?? (quick ? '2' : '5'), 1),
    durationMs: number('seconds', values.seconds ?? (quick ? '1' : '3'), 0.1) * 1000,
    warmupMs: quick ? 300 : 700,
    warmupCalls: quick ? 500 : 3000,
    warmupMaxMs: quick ? 1000 : 6000,
    slowIntervalMs: quick ? 100 : 250,
    slowRounds: quick ? 1 : 2,
    slowStreams: number('slow-streams', values['slow-streams'], 0),
    only: values.only?.split(',') ?? null,
    scenarios: values.scenarios?.split(',') ?? null,
    // News and revokes go from process to process through PostgreSQL only.
    postgres: values.postgres || ((values.news || values.revokes) && !process.env.BENCH_DATABASE_URL),
    prepaid: values.prepaid,
    news: values.news,
    newsSamples: quick ? 10 : 50,
    memory: values.memory,
    revokes: values.revokes,
    revokeSamples: quick ? 20 : 200,
    installPortkey: values['install-portkey'],
    noBuild: values['no-build'],
  }
}

/** The entries that were asked for by name, with `always` whatever was asked. */
function chosen(flag, entries, names, always) {
  if (names === null) return entries
  const unknown = names.filter(name => !entries.some(entry => entry.name === name))
  if (unknown.length > 0) throw new Error(`--${flag}: ${unknown.join(', ')} cannot run here; there is ${entries.map(entry => entry.name).join(', ')}`)
  return entries.filter(entry => names.includes(entry.name) || entry.name === always)
}

/** Runs one scenario against one gateway: what the load says, plus memory and processor time of the gateway meanwhile. */
async function measure(gateway, upstream, scenario, { durationMs, warmupMs }) {
  const job = {
    ...scenario,
    url: gateway.url,
    headers: gateway.headers,
    durationMs,
    warmupMs,
    bytesMin: 1000,
    chunksMin: scenario.once ? slowChunks : chunksOfStream,
  }
  let rssPeakMib = rssMibOf(gateway.pid)
  const timer = setInterval(() => {
    const rssMib = rssMibOf(gateway.pid)
    if (rssMib !== null && rssMib > rssPeakMib) rssPeakMib = rssMib
  }, sampleIntervalMs)
  const cpuBefore = [gateway, upstream].map(({ pid }) => cpuMsOf(pid))
  try {
    const result = JSON.parse(await runToEnd(core.load, [program('load.mjs'), JSON.stringify(job)]))
    const [cpuMs, upstreamCpuMs] = [gateway, upstream].map(({ pid }, index) => (cpuBefore[index] === null ? null : cpuMsOf(pid) - cpuBefore[index]))
    gateway.answered += result.answered
    if (result.failed > 0) gateway.failures.push(`${scenario.name}: ${result.failed} calls failed, the first with: ${result.failure}`)
    const cpu =
      cpuMs === null
        ? {}
        : {
            cpuUsOfCall: (cpuMs * 1000) / Math.max(1, result.answered),
            gatewayBusy: cpuMs / result.wallMs,
            loadBusy: (result.cpuMs + upstreamCpuMs) / result.wallMs,
          }
    return { ...result, ...cpu, rssPeakMib }
  } finally {
    clearInterval(timer)
  }
}

/**
 * Brings every gateway to compiled code: by count, because a slow one that warms up for the same time is measured half compiled,
 * with a bound for a machine that is too busy.
 */
async function warmUp(gateways, upstream, scenarios, { warmupCalls, warmupMaxMs }) {
  for (const gateway of gateways) {
    say(`warm-up: ${gateway.title}`)
    for (const scenario of scenarios.filter(({ once }) => !once)) {
      const before = gateway.answered
      const deadlineMs = performance.now() + warmupMaxMs
      do await measure(gateway, upstream, scenario, { durationMs: 500, warmupMs: 0 })
      while (gateway.answered - before < warmupCalls && performance.now() < deadlineMs)
    }
  }
}

/** The rounds: within a scenario the contenders follow one another, so that a busy minute of the machine meets them all. */
async function runRounds(gateways, upstream, scenarios, options) {
  for (let round = 1; round <= options.rounds; round++) {
    for (const scenario of scenarios) {
      // The slow streams take as long whatever the gateway does: a look or two is enough.
      if (scenario.once && round > options.slowRounds) continue
      for (const gateway of gateways) {
        const result = await measure(gateway, upstream, scenario, options)
        gateway.results[scenario.name] ??= []
        gateway.results[scenario.name].push(result)
      }
      say(
        `round ${round} of ${options.rounds}: ${scenario.title}: ${gateways.map(gateway => `${gateway.name} ${Math.round(gateway.results[scenario.name].at(-1).callsPerS)}`).join(', ')} calls/s`,
      )
    }
  }
}

async function startAll(contenders, upstreamUrl, folder) {
  const gateways = []
  for (const { name, title, start } of contenders) {
    say(`starting ${title}`)
    const started = await start({ upstreamUrl, folder })
    gateways.push({ name, title, ...started, rssIdleMib: rssMibOf(started.pid), results: {}, failures: [], answered: 0 })
  }
  return gateways
}

async function checkBills(gateways) {
  for (const gateway of gateways) {
    if (gateway.checkBill === undefined) continue
    try {
      gateway.bill = await gateway.checkBill(gateway.answered)
    } catch (error) {
      gateway.failures.push(error.message)
    }
  }
}

function writeResults(name, results) {
  const resultsFolder = join(root, 'bench', 'results')
  mkdirSync(resultsFolder, { recursive: true })
  writeFileSync(join(resultsFolder, name), `${JSON.stringify(results, null, 2)}\n`)
}

async function runMemory(options, folder, databaseUrl) {
  const contenders = chosen('only', memoryContenders(databaseUrl), options.only, 'sdk')
  const scenarios = chosen('scenarios', memoryScenarios, options.scenarios)
  const before = machine()
  const contestants = await measureMemory({ folder, contenders, scenarios, options, say })
  const run = { at: new Date().toISOString(), options, isPinned, scenarios, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
  writeResults('memory.json', { ...run, contestants })
  console.log(memoryReport(run, contestants))
  process.exitCode = contestants.some(({ failures }) => failures.length > 0) ? 1 : 0
}

async function runRevokes(options, folder, databaseUrl) {
  const before = machine()
  const rows = await measureRevokes({ folder, databaseUrl, samples: options.revokeSamples, say })
  const run = { at: new Date().toISOString(), options, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
  writeResults('revokes.json', { ...run, rows })
  console.log(revokesTable(rows, options.revokeSamples, run))
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) ensure()
  if (options.installPortkey) installPortkey()
  const folder = mkdtempSync(join(tmpdir(), 'brigade-bench-'))
  const postgres = options.postgres ? await startPostgres() : null
  const clear = () => {
    killAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      clear()
      void Promise.resolve(postgres?.stop()).finally(() => process.exit(1))
    })
  }
  try {
    const databaseUrl = postgres?.url ?? process.env.BENCH_DATABASE_URL ?? null
    if (options.news) {
      console.log(newsTable(await measureNews({ folder, databaseUrl, samples: options.newsSamples, say }), options.newsSamples))
      return
    }
    if (options.memory) return await runMemory(options, folder, databaseUrl)
    if (options.revokes) return await runRevokes(options, folder, databaseUrl)
    const contenders = chosen('only', contendersOf({ databaseUrl, isPrepaid: options.prepaid }), options.only, 'passthrough')
    const scenarios = chosen('scenarios', scenariosOf(options), options.scenarios)
    const upstreamArgs = ['--chunks', chunksOfStream, '--slow-chunks', slowChunks, '--slow-interval-ms', options.slowIntervalMs].map(String)
    const upstream = await startServer(core.load, [program('upstream.mjs'), ...upstreamArgs], { ready: /^listening (\d+)$/ })
    const before = machine()
    const gateways = await startAll(contenders, `http://127.0.0.1:${upstream.match[1]}`, folder)
    await warmUp(gateways, upstream, scenarios, options)
    await runRounds(gateways, upstream, scenarios, options)
    await checkBills(gateways)
    const run = {
      at: new Date().toISOString(),
      options,
      isPinned,
      machine: { ...before, loadAverageAtEnd: machine().loadAverage },
      scenarios: scenarios.map(({ name, title }) => ({ name, title })),
    }
    const contestants = gateways.map(({ name, title, results, failures, answered, rssIdleMib, bill = null }) => ({
      name,
      title,
      answered,
      failures,
      bill,
      rssIdleMib,
      results,
    }))
    const summary = summarize(contestants)
    writeResults('latest.json', { ...run, summary, contestants })
    console.log(markdown(run, summary, contestants))
    for (const gateway of gateways) await gateway.stop()
    await upstream.stop()
    process.exitCode = contestants.some(({ failures }) => failures.length > 0) ? 1 : 0
  } finally {
    clear()
    await postgres?.stop()
  }
}

main().catch(error => {
  say(`bench: ${error.message}`)
  process.exitCode = 1
})
