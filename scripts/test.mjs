/**
 * `npm test [-- vitest arguments]`: makes the checkout ready, then runs the tests once. They run on the embedded database unless
 * TEST_DATABASE=postgres asks for a real server: the one of TEST_POSTGRES_URL, or one that is started here for the run.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensure } from './ensure.mjs'
import { runNode } from './paths.mjs'
import { findPostgres, startPostgres } from './postgres.mjs'

ensure()
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const env = { ...process.env, TEST_DATABASE: process.env.TEST_DATABASE ?? 'embedded' }
let server = null
if (env.TEST_DATABASE === 'postgres' && !env.TEST_POSTGRES_URL) {
  if (findPostgres() === null) {
    console.error('TEST_DATABASE=postgres needs a PostgreSQL installation (Debian: apt-get install postgresql) or TEST_POSTGRES_URL.')
    process.exit(1)
  }
  server = await startPostgres()
  env.TEST_POSTGRES_URL = server.url
}
process.exitCode = await runNode([vitest, 'run', ...process.argv.slice(2)], { env })
await server?.stop()
