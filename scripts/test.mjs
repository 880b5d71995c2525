/**
 * `npm test [-- vitest arguments]`: makes the checkout ready, then runs the tests once. They run on the embedded database unless
 * TEST_DATABASE=postgres asks for a real server, which scripts/postgres.mjs starts.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensure } from './ensure.mjs'
import { runNode } from './paths.mjs'

ensure()
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const env = { ...process.env, TEST_DATABASE: process.env.TEST_DATABASE ?? 'embedded' }
process.exitCode = await runNode([vitest, 'run', ...process.argv.slice(2)], { env })
