import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'

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
export function run(program: string, args: readonly string[], options: { cwd: string; env: Record<string, string>; stdin?: string }): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: options.cwd, env: { PATH: process.env['PATH'] ?? '', ...options.env }, timeout: 100_000 })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', chunk => {
      stdout += String(chunk)
    })
    child.stderr.on('data', chunk => {
      stderr += String(chunk)
    })
    child.once('error', reject)
    child.once('close', code => resolve({ code, stdout, stderr }))
    child.stdin.end(options.stdin ?? '')
  })
}

/** The program that scripts/test-clients.mjs has installed. */
export function programOf(setting: 'CLAUDE_PROGRAM' | 'CODEX_PROGRAM' | 'OPENCODE_PROGRAM'): string {
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
