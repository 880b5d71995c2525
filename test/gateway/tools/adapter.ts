/** The adapter of docs/guides/stdio-servers.md, and the lines with which the guide starts it. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type StartedProgram, startProgram } from '../../harness/started-program.ts'
import { until } from '../../harness/until.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const page = readFileSync(join(root, 'docs/guides/stdio-servers.md'), 'utf8')

export const adapterToken = 'a-long-random-token-of-the-adapter'
/** The field `auth` of a server behind the adapter. */
export const adapterAuth = { kind: 'header', header_name: 'Authorization', header_value: `Bearer ${adapterToken}` }

/** Returns the words after `node` of the line of the guide that starts a program, on a free port. */
export function guideLine(program: string): readonly string[] {
  const line = page.split('\n').find(each => each.startsWith('node stdio-adapter.mjs ') && each.includes(program))
  if (line === undefined) throw new Error(`the guide does not start ${program}`)
  const [adapter = '', , ...command] = line.split(' ').slice(1)
  return [adapter, '0', ...command]
}

export interface StartedAdapter {
  /** The address of its MCP endpoint. */
  readonly url: string
  readonly hostPort: string
  readonly running: StartedProgram
}

/** A folder with the adapter of the guide and the packages of the project. */
export class AdapterFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'brigade-adapter-'))
  readonly #started: StartedProgram[] = []

  constructor() {
    const [, adapter = ''] = /```js\n([\s\S]*?)```/.exec(page) ?? []
    symlinkSync(join(root, 'node_modules'), join(this.path, 'node_modules'))
    writeFileSync(join(this.path, 'stdio-adapter.mjs'), adapter)
  }

  /** Starts the adapter with the words that follow `node`. */
  async start(words: readonly string[]): Promise<StartedAdapter> {
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.path, ADAPTER_TOKEN: adapterToken }
    const running = startProgram(process.execPath, words, { env, cwd: this.path })
    this.#started.push(running)
    await until(() => /listening on \d+/.test(running.out()), 'the adapter listens')
    const hostPort = `127.0.0.1:${/listening on (\d+)/.exec(running.out())?.[1]}`
    return { url: `http://${hostPort}/mcp`, hostPort, running }
  }

  async close(): Promise<void> {
    for (const { child, ended } of this.#started) {
      child.kill()
      await ended
    }
    rmSync(this.path, { recursive: true, force: true })
  }
}
