import { fileURLToPath } from 'node:url'
import type { TestApp, TestReply } from '../harness/app.ts'
import { startProgram } from '../harness/started-program.ts'

const brigade = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

/**
 * Runs `brigade connect <client> --write`, with the sandbox as model, as a person in that home and folder would; with `--print` it only prints. With `--write`
 * the command checks the client, which is one call of the sandbox where models are connected. Returns what it printed. Throws when it fails.
 */
export async function connect(app: TestApp, home: { readonly path: string; readonly work: string }, client: string, ...flags: string[]): Promise<string> {
  const env = { HOME: home.path, BRIGADE: app.baseUrl, BRIGADE_KEY: app.key }
  const way = flags.includes('--print') ? flags.filter(flag => flag !== '--print') : ['--write', ...flags]
  const { ended, out, err } = startProgram(process.execPath, [brigade, 'connect', client, '--model', 'sandbox-chat', ...way], { cwd: home.work, env })
  const status = await ended
  if (status !== 0) throw new Error(`connect ended with ${status}: ${err()}`)
  return out()
}

/** What is in memory now. */
export function memoryOf(app: TestApp, key: string): Promise<TestReply> {
  return app.call('GET', `/v1/me/memory/o?key=${encodeURIComponent(key)}`)
}

/** A prompt that has the sandbox call a tool which writes `content` there. */
export function writePrompt(tool: string, key: string, content: string): string {
  return `call ${tool} ${JSON.stringify({ key, content })}`
}
