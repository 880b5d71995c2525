/** A separate process that makes calls until it is told to stop. It prints the id of every call whose settlement has returned. */
import { systemClock } from '../../../src/platform/clock.ts'
import { openPostgres } from '../../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { callOnce, request, startEngine } from './engine.ts'

const [url = '', dataDir = ''] = process.argv.slice(2)
const db = await openPostgres(new Secret(url), { poolMax: 4, clock: systemClock, log: silentLog })
const engine = await startEngine(db, { dataDir, flushThread: false })
await engine.limits.budgets.set(1, 'org', '1', 1_000_000_000_000n)
let isStopping = false
process.once('SIGTERM', () => {
  isStopping = true
})

async function work(): Promise<void> {
  while (!isStopping) {
    const asked = request(1000n)
    await callOnce(engine, asked, 600n)
    process.stdout.write(`${asked.eventId}\n`)
    await systemClock.sleep(1)
  }
}

await Promise.all([work(), work(), work(), work()])
await engine.stop()
await db.close()
