/** Runs the programs that scripts/test-conformance.mjs has installed, with the Node that is beside them. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const folder = process.env['CONFORMANCE_FOLDER'] ?? ''

/** The programs, as arguments of Node. */
export const programs = {
  conformance: join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js'),
  inspector: join(folder, 'node_modules/.bin/mcp-inspector'),
}

/** Runs a program to its end, in an empty home. */
export function run(program: string, args: readonly string[]): Promise<Ended> {
  const home = mkdtempSync(join(tmpdir(), 'brigade-conformance-'))
  const env = { PATH: process.env['PATH'], HOME: home, NO_COLOR: '1' }
  const child = spawn(join(folder, 'node_modules/.bin/node'), [program, ...args], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 110_000 })
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('close', code => {
      rmSync(home, { recursive: true, force: true })
      done({ code, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') })
    })
  })
}
