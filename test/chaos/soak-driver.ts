/** A process of its own under the load of the soak, until somebody kills it. */
import { systemClock } from '../../src/platform/clock.ts'
import { openPostgres } from '../../src/platform/db/postgres/db-postgres.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { startEngine } from '../gateway/limits/engine.ts'
import { randomFrom } from './plan.ts'
import { soakCall } from './soak-load.ts'

const [url = '', dataDir = '', seed = '1'] = process.argv.slice(2)
const db = await openPostgres(new Secret(url), { poolMax: 4, clock: systemClock, log: silentLog })
const engine = await startEngine(db, { dataDir, env: { JANITOR_MS: '300' } })
const random = randomFrom(Number(seed))
process.stdout.write('started\n')

async function lane(): Promise<never> {
  for (;;) {
    await soakCall(engine, random)
    await systemClock.sleep(1)
  }
}

await Promise.all([lane(), lane(), lane(), lane()])
