/**
 * `npm run bench:reports` measures whether the cost of reports is independent of the number of events. It requests every report from a gateway on
 * PostgreSQL, once with 100 thousand events of one organisation and once with 10 million. The events cover 90 days and 1,000 keys. README.md describes it.
 * The table goes to stdout, progress to stderr, and every number to results/reports.json. `--check` ends with exit code 1 when a report fails.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensure } from '../scripts/ensure.mjs'
import { root } from '../scripts/paths.mjs'
import { runToEnd, startServer } from './child.mjs'
import { machine } from './machine.mjs'
import { newDatabase, onPostgres } from './postgres-run.mjs'
import { askBoth } from './reports-asked.mjs'
import { fillEvents, fillNames, models, providers, sizesOf, spanDays } from './reports-events.mjs'
import { judge, reportsTable } from './reports-table.mjs'

/** Bytes on disk for one event with its indexes, including the write-ahead log. */
const bytesOfEvent = 420
const reserveBytes = 1.5e9
const fewerEvents = 1_000_000
const say = text => process.stderr.write(`${text}\n`)

function readOptions() {
  const { values } = parseArgs({
    options: {
      small: { type: 'string', default: '100000' },
      large: { type: 'string', default: '10000000' },
      times: { type: 'string', default: '30' },
      check: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
    },
  })
  const number = (name, min) => {
    const value = Number(values[name])
    if (Number.isSafeInteger(value) && value >= min) return value
    throw new Error(`--${name} must be a whole number of at least ${min}, not "${values[name]}"`)
  }
  return { small: number('small', 1000), large: number('large', 1000), times: number('times', 1), check: values.check, noBuild: values['no-build'] }
}

/** Returns the larger size, or a million when the disk of the database has no room for it. */
function largeThatFits(large, folder) {
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  // Other organisations have a tenth as many events in addition. The smaller database is only a hundredth of this size.
  const needed = large * 1.1 * bytesOfEvent + reserveBytes
  if (free >= needed || large <= fewerEvents) return large
  say(`only ${(free / 1e9).toFixed(1)} GB free at ${folder}, ${(needed / 1e9).toFixed(1)} GB are needed: ${fewerEvents.toLocaleString('en')} events instead`)
  return fewerEvents
}

/** Writes the operator's configuration file with the models of the events. */
function writeConfig(folder) {
  const file = join(folder, 'reports.json')
  const rows = providers.map(({ id, residency }) => ({ id, base_url: 'http://127.0.0.1:9/v1', auth: 'none', residency }))
  const routes = providers.map(({ id }) => ({ provider: id, input_inr_per_mtok: 10, output_inr_per_mtok: 40 }))
  writeFileSync(file, JSON.stringify({ providers: rows, models: models.map(id => ({ id, kind: 'chat', routes })) }))
  return file
}

function settingsOf(folder, databaseUrl) {
  mkdirSync(folder, { recursive: true })
  return {
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: databaseUrl,
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATA_DIR: join(folder, 'data'),
    CONFIG_FILE: writeConfig(folder),
    SANDBOX: 'off',
    LOCAL_SERVERS: 'off',
    PRICE_FEED_URL: 'off',
    LOG_LEVEL: 'error',
    CONSOLE_RPM: '1000000',
    ANON_RPM: '1000000',
    AGENT_TOKEN_TTL_S: '86400',
  }
}

const brigade = (env, words) => runToEnd(null, [join(root, 'dist', 'cli', 'brigade.js'), ...words], { env, cwd: root })
const secondsOf = async work => {
  const beganMs = performance.now()
  const value = await work()
  return [(performance.now() - beganMs) / 1000, value]
}

/** Makes a database with `size` events, and starts a gateway on it. */
async function prepare(server, folder, name, size, nowMs) {
  const { default: pg } = await import('pg')
  const url = await newDatabase(server, name)
  const env = settingsOf(join(folder, name), url)
  const words = ['admin', 'create', '--json', '--email', 'bench@example.test', '--org', 'Bench', '--rpm', '100000000', '--daily', '100000000']
  const made = JSON.parse(await brigade(env, words))
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const world = { orgId: made.org_id, key: made.key, nowMs, ...(await fillNames(client, made.org_id)) }
  say(`${size.toLocaleString('en')} events: inserting`)
  const [fillS] = await secondsOf(() => fillEvents(client, world, size, say))
  say(`${size.toLocaleString('en')} events: brigade admin usage rebuild`)
  const [rebuildS] = await secondsOf(() => brigade(env, ['admin', 'usage', 'rebuild', '--json']))
  await client.query('vacuum analyze')
  const sizes = await sizesOf(client)
  const gateway = await startServer(null, [join(root, 'dist', 'main.js')], { env, cwd: root, ready: /listens on (http:\S+)/ })
  const stop = async () => {
    await gateway.stop()
    await client.end()
  }
  return { events: size, fillS, rebuildS, sizes, client, world, url: gateway.match[1], stop }
}

async function main() {
  const options = readOptions()
  if (!options.noBuild) await ensure({ tools: true })
  await onPostgres((postgres, folder) => measure(options, postgres, folder))
}

async function measure(options, postgres, folder) {
  const sides = []
  try {
    const large = largeThatFits(options.large, postgres.folder)
    const before = machine()
    const nowMs = Date.now()
    for (const [name, size] of [
      ['bench_small', options.small],
      ['bench_large', large],
    ])
      sides.push(await prepare(postgres.url, folder, name, size, nowMs))
    say('asking')
    const answers = await askBoth(sides, options.times)
    const [small, big] = sides.map(({ events, fillS, rebuildS, sizes }, index) => ({ events, fillS, rebuildS, sizes, answers: answers[index] }))
    const rows = judge(small, big)
    const run = { at: new Date().toISOString(), options: { ...options, large }, spanDays, machine: { ...before, loadAverageAtEnd: machine().loadAverage } }
    mkdirSync(join(root, 'bench', 'results'), { recursive: true })
    writeFileSync(join(root, 'bench', 'results', 'reports.json'), `${JSON.stringify({ ...run, rows, small, large: big }, null, 2)}\n`)
    console.log(reportsTable(run, rows, small, big))
    if (options.check && rows.some(({ isMissed }) => isMissed)) process.exitCode = 1
  } finally {
    for (const { stop } of sides) await stop().catch(() => undefined)
  }
}

main().catch(error => {
  say(`bench: ${error.message}`)
  process.exitCode = 1
})
