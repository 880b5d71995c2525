import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { TestApp, TestReply } from '../harness/app.ts'

const brigade = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

/** Runs `brigade connect <client> --write`, with the sandbox as model, as a person in that home and folder would; with `--print` it only prints. What it printed; throws when it fails. */
export function connect(app: TestApp, home: { readonly path: string; readonly work: string }, client: string, ...flags: string[]): string {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home.path, BRIGADE: app.baseUrl }
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [brigade, 'connect', client, '--model', 'sandbox-chat', ...(flags.includes('--print') ? flags.filter(flag => flag !== '--print') : ['--write', ...flags])],
    { cwd: home.work, env, encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`connect ended with ${status}: ${stderr}`)
  return stdout
}

/** What is in memory now. */
export function memoryOf(app: TestApp, key: string): Promise<TestReply> {
  return app.call('GET', `/v1/me/memory/o?key=${encodeURIComponent(key)}`)
}

/** A prompt that has the sandbox call a tool which writes `content` there. */
export function writePrompt(tool: string, key: string, content: string): string {
  return `call ${tool} ${JSON.stringify({ key, content })}`
}
