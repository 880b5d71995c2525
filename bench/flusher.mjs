/**
 * `npm run bench:flusher` measures how fast a journal of usage is flushed into the database while no other work runs. README.md describes it. The table
 * goes to stdout, and every number to results/flusher.json. `--check` ends with exit code 1 when the flusher is too slow.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { startPostgres } from '../scripts/postgres.mjs'
import { killAll, runToEnd } from './child.mjs'
import { machine } from './machine.mjs'
import { median } from './statistics.mjs'

/** Events a second that the flusher must reach on PostgreSQL. */
const eventsPerSMin = 3000
const say = text => process.stderr.write(`${text}\n`)

function readOptions() {
  const { values } = parseArgs({
    options: {
      events: { type: 'string', default: '100000' },
      callers: { type: 'string', default: '50' },
      rounds: { type: 'string', default: '3' },
      only: { type: 'string' },
      dist: { type: 'string', multiple: true, default: [] },
      check: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const number = name => {
    const value = Number(values[name])
    if (Number.isSafeInteger(value) && value >= 1) return value
    throw new Error(`--${name} must be a whole number of at least 1, not "${values[name]}"`)
  }
  const databases = values.only?.split(',') ?? ['postgres', 'embedded']
  const unknown = databases.filter(name => name !== 'postgres' && name !== 'embedded')
  if (unknown.length > 0) throw new Error(`--only: ${unknown.join(', ')} is neither postgres nor embedded`)
  const builds = [{ name: 'this', dist: join(root, 'dist') }, ...values.dist.map(dist => ({ name: dist, dist: resolve(dist) }))]
  return { events: number('events'), callers: number('callers'), rounds: number('rounds'), databases, builds, check: values.check, noBuild: values['no-build'] }
}

/** Measures the flush of one journal into a new database. Either the process that wrote the journal flushes it, or a process that finds it after a kill. */
async function measure({ dist }, database, way, { events, callers }) {
  const postgres = database === 'postgres' ? await startPostgres() : null
  const folder = mkdtempSync(join(tmpdir(), 'brigade-flusher-'))
  const env = {
    DATA_DIR: join(folder, 'data'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    SANDBOX: 'on',
    LOCAL_SERVERS: 'off',
    PRICE_FEED_URL: 'off',
    LOG_LEVEL: 'error',
    JOURNAL_MAX_BYTES: String(8 * 1024 ** 3),
    ...(postgres === null ? {} : { DATABASE_URL: postgres.url }),
  }
  const child = async (verb, count) =>
    JSON.parse(await runToEnd(null, [join(root, 'bench', 'flusher-child.mjs'), dist, verb, String(count), String(callers)], { env, cwd: folder }))
  try {
    if (way === 'flush') return await child('flush', events)
    const { bytes } = await child('leave', events)
    return { ...(await child('adopt', events)), bytes }
  } finally {
    await postgres?.stop()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const titles = { flush: 'the process that wrote it', adopt: 'a new process, after a kill' }

function table(rows, { events, callers, rounds, machine: { cpu, cores, node, commit, loadAverage, loadAverageAtEnd } }) {
  return [
    `A journal of ${events.toLocaleString('en')} events of ${callers} callers into an empty database; median of ${rounds}. The bar: ${eventsPerSMin.toLocaleString('en')} events/s on PostgreSQL.`,
    '',
    '| build | database | flushed by | events/s | best | MB of journal |',
    '|---|---|---|---:|---:|---:|',
    ...rows.map(
      row =>
        `| ${row.build} | ${row.database} | ${titles[row.way]} | ${Math.round(row.eventsPerS).toLocaleString('en')} | ${Math.round(row.best).toLocaleString('en')} | ${(row.bytes / 1e6).toFixed(0)} |`,
    ),
    '',
    `${cpu}, ${cores} cores, Node ${node}, commit ${commit}, load average ${loadAverage.toFixed(1)} before and ${loadAverageAtEnd.toFixed(1)} after.`,
  ].join('\n')
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) await ensure({ tools: true })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, killAll)
  const before = machine()
  const cases = options.builds.flatMap(build => options.databases.flatMap(database => ['flush', 'adopt'].map(way => ({ build, database, way, runs: [] }))))
  // Every round measures all cases, so that other work on the machine affects all of them.
  for (let round = 1; round <= options.rounds; round++) {
    for (const one of cases) {
      const run = await measure(one.build, one.database, one.way, options)
      one.runs.push(run)
      say(`round ${round}: ${one.build.name}, ${one.database}, ${one.way}: ${Math.round(run.eventsPerS)} events/s`)
    }
  }
  const rows = cases.map(({ build, database, way, runs }) => {
    const rates = runs.map(run => run.eventsPerS)
    return { build: build.name, database, way, eventsPerS: median(rates), best: Math.max(...rates), bytes: runs[0].bytes, runs }
  })
  const { events, callers, rounds } = options
  const run = { at: new Date().toISOString(), events, callers, rounds, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
  mkdirSync(join(root, 'bench', 'results'), { recursive: true })
  writeFileSync(join(root, 'bench', 'results', 'flusher.json'), `${JSON.stringify({ ...run, rows }, null, 2)}\n`)
  console.log(table(rows, run))
  const judged = rows.find(row => row.build === 'this' && row.database === 'postgres' && row.way === 'flush')
  if (options.check && judged !== undefined && judged.eventsPerS < eventsPerSMin) process.exitCode = 1
}

main().catch(error => {
  killAll()
  say(`bench: ${error.message}`)
  process.exitCode = 1
})
