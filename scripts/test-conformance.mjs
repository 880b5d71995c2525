/**
 * `npm run test:conformance [-- vitest arguments]` runs the conformance suite of the MCP project and its inspector, both unmodified, against this MCP
 * server. Both need Node 22 and 300 MB, so they and their Node are not dependencies. They are installed when they are first needed, under
 * node_modules/.cache. When they cannot be installed, the script prints one line, runs nothing and does not fail. `--installed` only installs, and the exit
 * code says whether this succeeded.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensureInstalled } from './ensure.mjs'
import { runNode } from './paths.mjs'
import { installedFolder, programIn, starts } from './programs.mjs'

const packages = ['node@24.21.0', '@modelcontextprotocol/conformance@0.2.0-alpha.12', '@modelcontextprotocol/inspector@2.12.0']

/** One test runs a whole set of the suite, which takes 15 s on an idle machine. */
const testTimeoutMs = 120_000

await ensureInstalled({ tools: true })
const folder = installedFolder('conformance/conformance-0.2.0-alpha.12-inspector-2.12.0', packages, made => starts(programIn(made, 'node'), made))
if (folder === null) console.error(`SKIPPED: MCP conformance (could not be installed: ${packages.join(', ')}; this needs the npm registry once).`)
if (process.argv.includes('--installed')) {
  process.exitCode = folder === null ? 1 : 0
} else if (folder !== null) {
  const env = { ...process.env, CONFORMANCE_FOLDER: folder, TEST_DATABASE: process.env.TEST_DATABASE ?? 'embedded' }
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  process.exitCode = await runNode([vitest, 'run', 'test/conformance', `--test-timeout=${testTimeoutMs}`, ...process.argv.slice(2)], { env })
}
