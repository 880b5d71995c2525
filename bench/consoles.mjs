/**
 * `npm run bench:consoles` measures whether calls are slower while 50 people have the console open. README.md describes it. The table goes to stdout, progress
 * to stderr, and every number to results/consoles.json.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { startPostgres } from '../scripts/postgres.mjs'
import { core, isPinned, killAll, startServer } from './child.mjs'
import { contendersOf, startBrigade } from './contenders.mjs'
import { machine } from './machine.mjs'
import { addedOf, bestRatioOf, describe, ratioOf, table } from './report.mjs'
import { measure, program, say, startAll, warmUp } from './rounds.mjs'
import { chunksOfStream, scenariosOf } from './workload.mjs'

/**
 * What calls may lose. Consoles read reports on the core of the gateway, so the bars leave room for that work, which is a part of the core, and for the noise of
 * a machine with two cores. Every figure is the one with consoles against the one without.
 */
const bars = [
  { name: 'throughput', head: 'chat, 50 connections: throughput', least: 0.9 },
  { name: 'p50', head: 'chat, 1 connection: p50 against the passthrough', most: 1.1 },
  { name: 'addedP50Ms', head: 'chat, 1 connection: added p50, ms', most: 0.05 },
]

function readOptions() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      consoles: { type: 'string', default: '50' },
      check: { type: 'boolean', default: false },
      results: { type: 'string', default: join(root, 'bench', 'results') },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  return {
    rounds: Number(values.rounds ?? (quick ? 2 : 8)),
    durationMs: Number(values.seconds ?? (quick ? 3 : 12)) * 1000,
    consoles: Number(values.consoles),
    warmupMs: quick ? 300 : 700,
    warmupCalls: quick ? 500 : 3000,
    warmupMaxMs: quick ? 1000 : 6000,
    check: values.check,
    resultsFolder: resolve(values.results),
    noBuild: values['no-build'],
  }
}

/** Makes people in the organisation of the bench, and returns the cookie of a session of each. */
async function signIn(databaseUrl, masterKey, count) {
  const { deriveKey, hashKey } = await import(new URL('../dist/platform/security/secrets.js', import.meta.url))
  const key = deriveKey(masterKey, 'session-cookie')
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query(
      `with people as (
         insert into users (email, name, created_at) select 'console-' || n || '@bench.test', 'Console', now() from generate_series(1, $1::int) n returning id)
       insert into org_members (org_id, user_id, role, created_at) select (select max(id) from orgs), id, 'admin', now() from people
       returning org_id, user_id`,
      [count],
    )
    const cookies = []
    for (const { org_id: orgId, user_id: userId } of rows) {
      const id = randomBytes(32).toString('base64url')
      await client.query(`insert into sessions (id_hash, user_id, org_id, created_at, expires_at) values ($1, $2, $3, now(), now() + interval '1 day')`, [
        hashKey(id),
        userId,
        orgId,
      ])
      cookies.push(`br_session=${id}.${createHmac('sha256', key).update(id).digest('base64url')}`)
    }
    return cookies
  } finally {
    await client.end()
  }
}

/** Opens the consoles, and returns a function that closes them and returns what they have read. */
async function openConsoles(url, cookies, folder) {
  const report = join(folder, 'consoles.json')
  const child = await startServer(core.load, [program('consoles-child.mjs'), JSON.stringify({ url, cookies, report })], { ready: /^open \d+$/ })
  return async () => {
    await child.stop()
    return JSON.parse(readFileSync(report, 'utf8'))
  }
}

/** Measures both scenarios without and with consoles. Every second round has the opposite order. */
async function runRounds(gateways, upstream, scenarios, cookies, options, folder) {
  const [base, without, withConsoles] = gateways
  const read = { hints: 0, reads: 0, failed: 0, failure: null }
  for (let round = 1; round <= options.rounds; round++) {
    for (const scenario of scenarios) {
      const order = [base, without, withConsoles]
      for (const gateway of round % 2 === 0 ? order.toReversed() : order) {
        const close = gateway === withConsoles ? await openConsoles(gateway.url, cookies, folder) : null
        const result = await measure(gateway, upstream, scenario, options)
        gateway.results[scenario.name] = [...(gateway.results[scenario.name] ?? []), result]
        if (close === null) continue
        const done = await close()
        read.hints += done.hints
        read.reads += done.reads
        read.failed += done.failed + done.ended
        read.failure ??= done.failure ?? (done.ended > 0 ? 'a stream ended' : null)
      }
      const figures = gateways.map(({ name, results }) => `${name} ${Math.round(results[scenario.name].at(-1).callsPerS)}`)
      say(`round ${round} of ${options.rounds}: ${scenario.title}: ${figures.join(', ')} calls/s`)
    }
  }
  return read
}

function figuresOf([base, without, withConsoles]) {
  const callsPerS = result => result.callsPerS
  const p50Ms = result => result.latencyMs?.p50
  const values = {
    throughput: ratioOf(callsPerS, 'chat-50')(withConsoles, base) / ratioOf(callsPerS, 'chat-50')(without, base),
    throughputBest: bestRatioOf(callsPerS, 'chat-50')(withConsoles, base) / bestRatioOf(callsPerS, 'chat-50')(without, base),
    p50: ratioOf(p50Ms, 'chat-1')(withConsoles, base) / ratioOf(p50Ms, 'chat-1')(without, base),
    addedP50Ms: addedOf(p50Ms, 'chat-1')(withConsoles, base) - addedOf(p50Ms, 'chat-1')(without, base),
  }
  return bars.map(({ name, head, least = null, most = null }) => {
    const value = values[name]
    return { name, head, least, most, value, verdict: (least === null || value >= least) && (most === null || value <= most) ? 'met' : 'missed' }
  })
}

async function measureAll(options, folder, databaseUrl) {
  const upstream = await startServer(core.load, [program('upstream.mjs'), '--chunks', String(chunksOfStream)], { ready: /^listening (\d+)$/ })
  const before = machine()
  const masterKey = randomBytes(32)
  const settings = { MASTER_KEY: masterKey.toString('base64') }
  const passthrough = contendersOf({ databaseUrl, isPrepaid: false }).find(({ name }) => name === 'passthrough')
  const brigade = {
    name: 'brigade',
    title: 'Brigade, PostgreSQL, no console',
    start: started => startBrigade({ ...started, name: 'brigade', databaseUrl, settings }),
  }
  const [base, without] = await startAll([passthrough, brigade], `http://127.0.0.1:${upstream.match[1]}`, folder)
  // The same process as another contender. It has results of its own.
  const withConsoles = {
    ...without,
    name: 'brigade-consoles',
    title: `Brigade, PostgreSQL, ${options.consoles} consoles`,
    results: {},
    failures: [],
    answered: 0,
  }
  const gateways = [base, without, withConsoles]
  const scenarios = scenariosOf({ slowStreams: 0 }).filter(({ name }) => name === 'chat-1' || name === 'chat-50')
  const cookies = await signIn(databaseUrl, masterKey, options.consoles)
  await warmUp([base, without], upstream, scenarios, options)
  const read = await runRounds(gateways, upstream, scenarios, cookies, options, folder)
  const bill = await without.checkBill(without.answered + withConsoles.answered)
  await Promise.all([base.stop(), without.stop()])
  await upstream.stop()
  const run = { at: new Date().toISOString(), options, isPinned, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
  return { ...run, read, bill, bars: figuresOf(gateways), gateways: gateways.map(({ name, title, results, failures }) => ({ name, title, results, failures })) }
}

function print(run) {
  const { options, read, gateways } = run
  const limit = ({ least, most }) => (least === null ? `at most ${most}` : `at least ${least}`)
  console.log(
    table(
      [`${options.consoles} consoles against none`, 'limit', 'measured', 'verdict'],
      run.bars.map(bar => [bar.head, limit(bar), bar.value.toFixed(3), bar.verdict]),
    ),
  )
  console.log(`\nEach figure is divided by the passthrough of its own round first. The consoles received ${read.hints} hints and made ${read.reads} reads.`)
  console.log(describe(run))
  if (read.failed > 0) console.log(`FAILED consoles: ${read.failed} times, the first with: ${read.failure}`)
  if (read.hints === 0 || read.reads === 0) console.log('FAILED consoles: they received no hint or read nothing')
  for (const { title, failures } of gateways) for (const failure of failures) console.log(`FAILED ${title}: ${failure}`)
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) await ensure({ tools: true })
  const folder = mkdtempSync(join(tmpdir(), 'brigade-bench-'))
  const postgres = await startPostgres()
  const clear = () => {
    killAll()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => {
      clear()
      void Promise.resolve(postgres.stop()).finally(() => process.exit(1))
    })
  try {
    const run = await measureAll(options, folder, postgres.url)
    mkdirSync(options.resultsFolder, { recursive: true })
    writeFileSync(join(options.resultsFolder, 'consoles.json'), `${JSON.stringify(run, null, 2)}\n`)
    print(run)
    const hasFailed = run.read.failed > 0 || run.read.hints === 0 || run.read.reads === 0 || run.gateways.some(({ failures }) => failures.length > 0)
    const isMissed = options.check && run.bars.some(({ verdict }) => verdict === 'missed')
    process.exitCode = hasFailed || isMissed ? 1 : 0
  } finally {
    clear()
    await postgres.stop()
  }
}

main().catch(error => {
  say(`bench: ${error.message}`)
  process.exitCode = 1
})
