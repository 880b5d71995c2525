/**
 * `npm run test:clients [-- vitest arguments]`: the coding agents that people run, as they are, against a gateway on this machine.
 * They are large (some 400 MB each), so they are no dependencies: they are installed here when they are first asked for, each in a
 * folder of its own under node_modules/.cache, and found by the tests through the environment.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { ensureInstalled } from './ensure.mjs'
import { root, runNode } from './paths.mjs'

const clients = [
  { setting: 'CODEX_PROGRAM', name: '@openai/codex', version: '0.169.0', program: 'codex' },
  { setting: 'OPENCODE_PROGRAM', name: 'opencode-ai', version: '1.18.33', program: 'opencode' },
]

/** The installed program, or null when it cannot be installed here. */
function installed({ name, version, program }) {
  const folder = join(root, 'node_modules', '.cache', 'test-clients', `${program}-${version}`)
  const path = join(folder, 'node_modules', '.bin', program)
  if (existsSync(path)) return path
  mkdirSync(folder, { recursive: true })
  console.error(`Installing ${name} ${version} ...`)
  const args = ['install', '--prefix', folder, '--no-save', '--no-audit', '--no-fund', '--loglevel=error', `${name}@${version}`]
  const { status } = spawnSync('npm', args, { stdio: 'inherit', shell: process.platform === 'win32' })
  return status === 0 && existsSync(path) ? path : null
}

ensureInstalled()
const env = { ...process.env, CLIENTS: 'on', TEST_DATABASE: process.env.TEST_DATABASE ?? 'embedded' }
const missing = []
for (const client of clients) {
  const path = installed(client)
  if (path === null) missing.push(client.name)
  else env[client.setting] = path
}
if (missing.length > 0) {
  console.error(`Could not be installed: ${missing.join(', ')}. Their tests cannot run.`)
  process.exitCode = 1
} else {
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
  process.exitCode = await runNode([vitest, 'run', 'test/clients', ...process.argv.slice(2)], { env })
}
