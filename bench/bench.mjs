/**
 * `npm run bench` measures what Brigade adds to a call, in comparison with plain passthrough proxies, on this machine and in one run. README.md describes
 * it. The table goes to stdout, progress to stderr, and every number to results/latest.json.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { startPostgres } from '../scripts/postgres.mjs'
import { core, isPinned, killAll, startServer } from './child.mjs'
import { buildCommit, comparedBuilds, comparisonOf, comparisonTable } from './compare.mjs'
import { billingOn, contendersOf } from './contenders.mjs'
import { machine } from './machine.mjs'
import { measureMemory, memoryContenders, memoryReport, memoryScenarios } from './memory.mjs'
import { measureNews, newsTable } from './news.mjs'
import { installPortkey } from './portkey.mjs'
import { describe, markdown, summarize, verdictsOf } from './report.mjs'
import { measureRevokes, revokesTable } from './revokes.mjs'
import { program, runRounds, say, slowChunks, startAll, warmUp } from './rounds.mjs'
import { measureTools, toolsTable, toolVerdicts } from './tools.mjs'
import { chunksOfStream, scenariosOf } from './workload.mjs'

/** A comparison starts both builds again after this many rounds. */
const roundsOfStart = 2

/** The default number of rounds. A comparison needs at least six starts to calculate bounds of a median. */
function defaultRounds(isQuick, isComparing) {
  if (isComparing) return '12'
  return isQuick ? '2' : '5'
}

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
      tools: { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      prepaid: { type: 'boolean', default: false },
      'install-portkey': { type: 'boolean', default: false },
      compare: { type: 'string' },
      check: { type: 'boolean', default: false },
      results: { type: 'string', default: join(root, 'bench', 'results') },
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
    rounds: number('rounds', values.rounds ?? defaultRounds(quick, values.compare !== undefined), 1),
    durationMs: number('seconds', values.seconds ?? (quick ? '1' : '3'), 0.1) * 1000,
    warmupMs: quick ? 300 : 700,
    warmupCalls: quick ? 500 : 3000,
    warmupMaxMs: quick ? 1000 : 6000,
    slowIntervalMs: quick ? 100 : 250,
    slowRounds: quick ? 1 : 2,
    slowStreams: number('slow-streams', values['slow-streams'], 0),
    only: values.only?.split(',') ?? null,
    scenarios: values.scenarios?.split(',') ?? null,
    // These measurements need several processes, which can share only PostgreSQL.
    postgres: values.postgres || ((values.news || values.revokes || values.tools) && !process.env.BENCH_DATABASE_URL),
    prepaid: values.prepaid,
    news: values.news,
    newsSamples: quick ? 10 : 50,
    memory: values.memory,
    revokes: values.revokes,
    revokeSamples: quick ? 20 : 200,
    tools: values.tools,
    toolSamples: quick ? 20 : 100,
    installPortkey: values['install-portkey'],
    compare: values.compare ?? null,
    isReversing: values.compare !== undefined,
    check: values.check,
    resultsFolder: resolve(values.results),
    noBuild: values['no-build'],
  }
}

/** Returns the entries that the flag names, and those that `always` names. */
function chosen(flag, entries, names, always) {
  if (names === null) return entries
  const unknown = names.filter(name => !entries.some(entry => entry.name === name))
  if (unknown.length > 0) throw new Error(`--${flag}: ${unknown.join(', ')} cannot run here; there is ${entries.map(entry => entry.name).join(', ')}`)
  return entries.filter(entry => names.includes(entry.name) || entry.name === always)
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
  const { resultsFolder } = results.options
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

async function runTools(options, folder, databaseUrl) {
  const before = machine()
  const measured = await measureTools({ folder, databaseUrl, options, say })
  const run = { at: new Date().toISOString(), options, isPinned, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
  const verdicts = toolVerdicts(measured.found)
  writeResults('tools.json', { ...run, ...measured, verdicts })
  console.log(toolsTable(measured, run))
  const isMissed = options.check && verdicts.some(({ verdict }) => verdict === 'missed')
  process.exitCode = measured.failures.length > 0 || isMissed ? 1 : 0
}

/** Starts the upstream and measures the contenders in all rounds. Returns them with a description of the run. */
async function measureAll(contenders, scenarios, options, folder) {
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
  for (const gateway of gateways) await gateway.stop()
  await upstream.stop()
  return { run, contestants }
}

const hasFailed = contestants => contestants.some(({ failures }) => failures.length > 0)

async function runAll(options, folder, databaseUrl) {
  const contenders = chosen('only', contendersOf({ databaseUrl, isPrepaid: options.prepaid }), options.only, 'passthrough')
  const scenarios = chosen('scenarios', scenariosOf(options), options.scenarios)
  const { run, contestants } = await measureAll(contenders, scenarios, options, folder)
  const summary = summarize(contestants)
  const verdicts = verdictsOf(summary)
  writeResults('latest.json', { ...run, summary, verdicts, contestants })
  console.log(markdown(run, summary, contestants))
  const isMissed = options.check && verdicts.some(({ verdict }) => verdict === 'missed')
  process.exitCode = hasFailed(contestants) || isMissed ? 1 : 0
}

/**
 * Measures both builds in several starts. How threads and memory settle in a process changes its figures by more than most changes do, so a start of both
 * builds is the unit of comparison, not a round.
 */
async function runComparison(options, folder, databaseUrl) {
  say(`building ${options.compare}`)
  const checkout = buildCommit(options.compare, folder)
  const scenarios = chosen('scenarios', scenariosOf({ slowStreams: 0 }), options.scenarios)
  const starts = []
  for (let start = 1; start <= Math.ceil(options.rounds / roundsOfStart); start++) {
    say(`start ${start} of ${Math.ceil(options.rounds / roundsOfStart)}`)
    const databaseOf = databaseUrl === null ? null : name => newDatabase(databaseUrl, `${name}_${start}`)
    const contenders = comparedBuilds({ checkout, commit: options.compare, databaseOf, settings: options.prepaid ? billingOn : {} })
    const inner = join(folder, `start-${start}`)
    mkdirSync(inner)
    // Every second start begins with the other build.
    starts.push(await measureAll(start % 2 === 0 ? contenders.toReversed() : contenders, scenarios, { ...options, rounds: roundsOfStart }, inner))
  }
  const of = name => starts.map(({ contestants }) => contestants.find(contestant => contestant.name === name))
  const rows = comparisonOf(of('before'), of('after'), scenarios)
  const { run } = starts.at(-1)
  writeResults('compare.json', { ...run, options, rows, starts: starts.map(({ contestants }) => contestants) })
  console.log(`${comparisonTable(rows)}\n\n${describe({ ...run, options })}`)
  const contestants = starts.flatMap(start => start.contestants)
  for (const { title, failures } of contestants) for (const failure of failures) console.log(`FAILED ${title}: ${failure}`)
  process.exitCode = hasFailed(contestants) || (options.check && rows.some(({ verdict }) => verdict === 'worse')) ? 1 : 0
}

async function newDatabase(databaseUrl, name) {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(`create database bench_${name}`)
  await client.end()
  const url = new URL(databaseUrl)
  url.pathname = `/bench_${name}`
  return url.href
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) await ensure({ tools: true })
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
    if (options.tools) return await runTools(options, folder, databaseUrl)
    if (options.compare !== null) return await runComparison(options, folder, databaseUrl)
    await runAll(options, folder, databaseUrl)
  } finally {
    clear()
    await postgres?.stop()
  }
}

main().catch(error => {
  say(`bench: ${error.message}${error.cause instanceof Error ? `: ${error.cause.message}` : ''}`)
  process.exitCode = 1
})
