/**
 * `npm run test:chaos [-- --seed N --rounds N --seconds N --first N --soak N --deliveries N --workers 3]` runs three gateways on one PostgreSQL under
 * random load. In every round, one gateway is killed with kill -9, at a point that the seed determines. With `--workers 3` they are the workers of one
 * gateway (WORKERS=3), and its supervisor replaces the dead one. In the next phase, all calls use the same rows for a minute, and no deadlock may occur.
 * In the last phase, 10,000 webhooks are delivered, and the first attempt of one in 20 fails. It uses the server of TEST_POSTGRES_URL, or a new one.
 * Without --seed, a new seed is chosen and printed. The same seed gives the same schedule. Exit code 0 means that no charge was lost or counted twice
 * and no hold remained.
 */
import { randomInt } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensure } from './ensure.mjs'
import { runNode } from './paths.mjs'
import { findPostgres, startPostgres } from './postgres.mjs'

const whole = { type: 'string' }
const { values } = parseArgs({
  options: { seed: whole, rounds: whole, seconds: whole, first: whole, soak: whole, deliveries: whole, workers: whole },
})
const number = (name, fallback) => {
  const value = Number(values[name] ?? fallback)
  if (Number.isInteger(value) && value >= 0) return String(value)
  console.error(`--${name} takes a whole number, not "${values[name]}".`)
  process.exit(2)
}
const workers = number('workers', 0)
if (workers !== '0' && workers !== '3') {
  console.error(`--workers takes 3, because a round needs three processes, not "${workers}".`)
  process.exit(2)
}
const env = {
  ...process.env,
  CHAOS: 'on',
  TEST_DATABASE: 'postgres',
  CHAOS_SEED: number('seed', randomInt(1_000_000)),
  CHAOS_FIRST: number('first', 0),
  CHAOS_WORKERS: workers,
  CHAOS_ROUNDS: number('rounds', 200),
  // Together with the soak and the start, the whole run takes less than a quarter of an hour.
  CHAOS_SECONDS: number('seconds', 780),
  CHAOS_SOAK_SECONDS: number('soak', 60),
  CHAOS_DELIVERIES: number('deliveries', 10_000),
}

await ensure({ tools: true })
let server = null
if (!env.TEST_POSTGRES_URL) {
  if (findPostgres() === null) {
    console.error('This needs a PostgreSQL installation (Debian: apt-get install postgresql) or TEST_POSTGRES_URL.')
    process.exit(1)
  }
  server = await startPostgres()
  env.TEST_POSTGRES_URL = server.url
}
console.log(`seed ${env.CHAOS_SEED}, ${env.CHAOS_ROUNDS} rounds in at most ${env.CHAOS_SECONDS} s, then ${env.CHAOS_SOAK_SECONDS} s of soak`)
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const of = workers === '0' ? '' : ` --workers ${workers}`
const parts = [
  ...(env.CHAOS_ROUNDS === '0' ? [] : ['kill-rounds']),
  ...(env.CHAOS_SOAK_SECONDS === '0' ? [] : ['deadlock-soak']),
  ...(env.CHAOS_DELIVERIES === '0' ? [] : ['webhook-load']),
]
const codes = []
for (const part of parts) codes.push(await runNode([vitest, 'run', '--disableConsoleIntercept=true', `test/chaos/${part}`], { env }))
process.exitCode = codes.every(code => code === 0) ? 0 : 1
await server?.stop()
console.log(
  process.exitCode === 0 ? 'chaos: all is well' : `chaos: something is wrong; node scripts/test-chaos.mjs --seed ${env.CHAOS_SEED}${of} plays it again`,
)
