/**
 * `npm test [-- vitest arguments]` makes the checkout ready, then runs the tests once. They run on the embedded database. With TEST_DATABASE=postgres they
 * run on the server of TEST_POSTGRES_URL, or on a server that is started for the run. The last lines name the promises that could not be tested on this
 * machine, and the parts that it lacks.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensure } from './ensure.mjs'
import { root, runNode } from './paths.mjs'
import { findPostgres, startPostgres } from './postgres.mjs'

await ensure({ tools: true })
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
const words = process.argv.slice(2)
// A run of tests by name skips all other tests, so skipped tests are not reported.
const isByName = words.some(word => word === '-t' || word.startsWith('--testNamePattern'))
const reporters = words.some(word => word.startsWith('--reporter')) ? [] : ['--reporter=default']
if (!isByName) reporters.push(`--reporter=${join(root, 'scripts', 'missing.mjs')}`)
process.exitCode = await runNode([vitest, 'run', ...words, ...reporters], { env })
await server?.stop()
