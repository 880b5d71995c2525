import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { TestApp } from '../harness/app.ts'
import { startProgram } from '../harness/started-program.ts'

/** What a program came to. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** A folder that is nobody's home but this test's. Not under the temporary folder, where some programs refuse to live. */
export function throwAwayHome(): { readonly path: string; readonly work: string; remove(): void } {
  const parent = join(homedir(), '.cache', 'brigade-test-clients')
  mkdirSync(parent, { recursive: true })
  const path = mkdtempSync(join(parent, 'home-'))
  const work = join(path, 'work')
  mkdirSync(work)
  return { path, work, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Runs a program with nothing of this process's environment but PATH, and with `stdin` as its whole input. */
export async function run(program: string, args: readonly string[], options: { cwd: string; env: Record<string, string>; stdin?: string }): Promise<Ran> {
  const { ended, out, err } = startProgram(program, args, { timeoutMs: 100_000, ...options, stdin: options.stdin ?? '' })
  return { code: await ended, stdout: out(), stderr: err() }
}

/** Gives an agent a budget that one call spends, and makes this call. */
export async function spend(app: TestApp, agent: { readonly id: number; readonly token: string }, model: string): Promise<void> {
  await app.setBudget('agent', agent.id, 0.000001)
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] }
  const { status, text } = await app.call('POST', '/v1/chat/completions', body, { token: agent.token })
  if (status !== 200) throw new Error(`the call that spends the budget answered ${status}: ${text}`)
}

/** The chunks of an answer that costs about ₹2. They differ, because the Gemini CLI ends an answer that repeats itself. */
export const longChunks = Array.from({ length: 1500 }, (_, index) => {
  const word = createHash('sha256')
    .update(String(index))
    .digest('hex')
    .replace(/\d/g, digit => 'ghijklmnop'[Number(digit)] ?? '')
  return `${word} ${word.slice(0, 33)} `
})
/** The usage that a provider of chat completions reports for it. A prompt of few tokens would leave a part of the budget for one more call. */
export const longUsage = { prompt_tokens: 60_000, completion_tokens: 50_000, total_tokens: 110_000 }

/** The program that scripts/test-clients.mjs has installed. */
export function programOf(setting: 'CLAUDE_PROGRAM' | 'CODEX_PROGRAM' | 'OPENCODE_PROGRAM' | 'GEMINI_PROGRAM'): string {
  const path = process.env[setting]
  if (path === undefined) throw new Error(`${setting} is not set: run these tests with npm run test:clients`)
  return path
}

/** A server between a program and the gateway at `baseUrl`, which writes down every call with its status. */
export async function listenBetween(baseUrl: string): Promise<{ readonly url: string; readonly calls: readonly string[]; close(): Promise<void> }> {
  const calls: string[] = []
  const server = createServer((incoming, reply) => {
    const { method, url, headers } = incoming
    const onward = request(new URL(url ?? '/', baseUrl), { method, headers }, answer => {
      calls.push(`${method} ${url} ${answer.statusCode}`)
      reply.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(reply)
    })
    onward.once('error', () => reply.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const close = (): Promise<void> =>
    new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${address.port}`, calls, close }
}
