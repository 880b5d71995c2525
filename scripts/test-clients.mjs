/**
 * `npm run test:clients [-- vitest arguments]`: the coding agents that people run, as they are, against a gateway on this machine.
 * They are large (some 400 MB each), so they are no dependencies: they are installed here when they are first asked for, each in a
 * folder of its own under node_modules/.cache, and found by the tests through the environment. A program that is there already is
 * taken when its variable (CODEX_PROGRAM=/path/to/codex) says where.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensureInstalled } from './ensure.mjs'
import { runNode } from './paths.mjs'
import { installedFolder, programIn, starts } from './programs.mjs'

const clients = [
  { setting: 'CLAUDE_PROGRAM', name: '@anthropic-ai/claude-code', version: '2.1.330', program: 'claude' },
  { setting: 'CODEX_PROGRAM', name: '@openai/codex', version: '0.169.0', program: 'codex' },
  { setting: 'OPENCODE_PROGRAM', name: 'opencode-ai', version: '1.18.33', program: 'opencode' },
]

/** A program that starts for the first time on a busy machine takes half a minute. */
const testTimeoutMs = 120_000

/** The installed program, or null when it cannot be installed here. */
function installed({ name, version, program }) {
  const folder = installedFolder(`test-clients/${program}-${version}`, [`${name}@${version}`], started => starts(programIn(started, program), started))
  return folder === null ? null : programIn(folder, program)
}

ensureInstalled()
const env = { ...process.env, CLIENTS: 'on', TEST_DATABASE: process.env.TEST_DATABASE ?? 'embedded' }
const missing = []
for (const client of clients) {
  const path = process.env[client.setting] ?? installed(client)
  if (path === null) missing.push(client)
  else env[client.setting] = path
}
if (missing.length > 0) {
  const names = missing.map(({ name, version }) => `${name}@${version}`).join(', ')
  const settings = missing.map(({ setting }) => setting).join(', ')
  console.error(`Could not be installed: ${names}. No test was run.`)
  console.error(`They come from the npm registry and are kept then: this needs the network once. Or say where they are: ${settings}.`)
  process.exitCode = 1
} else {
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  process.exitCode = await runNode([vitest, 'run', 'test/clients', `--test-timeout=${testTimeoutMs}`, ...process.argv.slice(2)], { env })
}
