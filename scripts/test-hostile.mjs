/**
 * `npm run test:hostile [-- --short] [-- --only <words of a name>] [-- --seed N]` sends hostile bodies, answers of providers and stores to a gateway
 * process with a heap of 768 MB while honest callers of another organisation work. It fails when the event loop was blocked for more than 250 ms, an honest
 * call was lost, or the process died. The quiet row measures how long the machine itself pauses. The limit is increased by three times that pause, at most
 * by 250 ms. The last line says how many rows the gateway passed. The short form takes a minute and a half, and the full form several minutes. Other words
 * are passed to vitest.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensure } from './ensure.mjs'
import { runNode } from './paths.mjs'

const rest = []
const env = { ...process.env, HOSTILE: 'on', TEST_DATABASE: 'embedded' }
const words = process.argv.slice(2)
for (let at = 0; at < words.length; at++) {
  if (words[at] === '--short') env.HOSTILE_FORM = 'short'
  else if (words[at] === '--only') env.HOSTILE_ONLY = words[++at]
  else if (words[at] === '--seed') env.HOSTILE_SEED = words[++at]
  else rest.push(words[at])
}
await ensure({ tools: true })
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
process.exitCode = await runNode([vitest, 'run', '--disableConsoleIntercept=true', '--no-file-parallelism', 'test/hostile', ...rest], { env })
