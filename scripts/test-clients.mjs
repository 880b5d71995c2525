/**
 * `npm run test:clients [-- vitest arguments]` runs unmodified coding agents against a gateway on this machine. They are large (some 400 MB each), so
 * they are not dependencies. They are installed when they are first needed, each in a separate folder under node_modules/.cache, and the tests find
 * them through the environment. When a variable (CODEX_PROGRAM=/path/to/codex) names an installed program, that program is used.
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
  { setting: 'GEMINI_PROGRAM', name: '@google/gemini-cli', version: '0.61.0', program: 'gemini' },
]

/** The first start of a program on a busy machine takes half a minute. */
const testTimeoutMs = 120_000

/** Returns the installed program, or null when it cannot be installed here. */
function installed({ name, version, program }) {
  const folder = installedFolder(`test-clients/${program}-${version}`, [`${name}@${version}`], started => starts(programIn(started, program), started))
  return folder === null ? null : programIn(folder, program)
}

await ensureInstalled({ tools: true })
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
