/** A gateway process with little memory, with honest callers and a hostile organisation. */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request as requestTo } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { until } from '../harness/until.ts'
import { type HostileProvider, type HostileStore, startHostileProvider, startHostileStore } from './hostile-peers.ts'

/** The heap of the gateway in MiB, as in a container of 1 GiB. */
export const heapMb = 768
/** Maximum time that the event loop of the gateway may be blocked on an otherwise idle machine. */
export const pauseMaxMs = 250

const run = promisify(execFile)
const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const cli = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

/** A line of loop-watch.mjs. */
interface WatchLine {
  readonly at: number
  readonly pauseMs: number
  readonly wallMs: number
  readonly rss: number
  readonly heapUsed: number
}

/** The observations since the last mark. Times are in milliseconds, memory is in bytes. */
export interface Seen {
  readonly pauseMs: number
  readonly wallMs: number
  readonly rss: number
  readonly heapUsed: number
  readonly times: readonly number[]
  /** One sentence for each honest call that was lost. */
  readonly lost: readonly string[]
}

/** The answer to a hostile request. Status 0 means no answer. */
export interface Got {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The first 4,096 characters. */
  readonly text: string
}

export interface Request {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Several parts are written one after the other, as fast as the gateway reads. */
  readonly body?: string | Buffer | AsyncIterable<Buffer> | Iterable<Buffer>
  /** The raw bytes after the head, already in HTTP chunks. A client library would not write so many chunks. */
  readonly framed?: Iterable<Buffer>
  /** The credential. Null means none. The default is the key of the hostile organisation. */
  readonly token?: string | null
  readonly cookie?: string
  /** The caller disconnects after this number of bytes of the answer. */
  readonly leaveAfterBytes?: number
  readonly timeoutMs?: number
}

export interface Field {
  readonly provider: HostileProvider
  readonly store: HostileStore
  /** Sends a request as the hostile organisation. Never throws. */
  send(request: Request): Promise<Got>
  /** Returns the body of a call that the hostile provider answers with the answer `name`. */
  callOf(name: string, more?: object): string
  /** Configures the hostile store as the memory store of the hostile organisation. */
  useStore(): Promise<Got>
  /** Forgets the observations so far. */
  mark(): Promise<void>
  /** Returns the observations since the last mark. */
  seen(): Promise<Seen>
  /** Returns whether the process is running. */
  isAlive(): boolean
  /** Returns the end of its output. */
  output(): string
  /** Starts the process again on its folder if it has died. */
  revive(): Promise<void>
  stop(): Promise<void>
}

export async function startField(): Promise<Field> {
  const [provider, store] = await Promise.all([startHostileProvider(), startHostileStore()])
  const folder = mkdtempSync(join(tmpdir(), 'brigade-hostile-'))
  const watchFile = join(folder, 'watch.jsonl')
  writeFileSync(watchFile, '')
  const honest = fork(file('./honest.mjs'), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { port } = await messageOf(honest, 'ready')
  writeFileSync(join(folder, 'brigade.config.json'), JSON.stringify(operatorFile(`http://127.0.0.1:${port}/v1`)))
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  const env = {
    CONFIG_FILE: join(folder, 'brigade.config.json'),
    OUTBOUND_ALLOW: `${provider.hostPort},${store.hostPort}`,
    DEFAULT_RPM: '1000000',
    NODE_OPTIONS: `--max-old-space-size=${heapMb}`,
    LOOP_WATCH_FILE: watchFile,
    LOG_LEVEL: 'error',
  }
  const start = (): Promise<GatewayProcess> => startProcess(env, dataDir, undefined, file('./loop-watch.mjs'))
  let gateway = await start()
  const admin = async (...words: string[]) => {
    const { stdout } = await run(process.execPath, [cli, 'admin', ...words, '--json'], { env: { PATH: process.env['PATH'] ?? '', DATA_DIR: dataDir } })
    return JSON.parse(stdout) as Record<string, string>
  }
  const ownKey = /API key +(\S+)/.exec(gateway.output())?.[1] ?? ''
  const made = await admin('create', '--email', 'evil@hostile.test', '--org', 'Hostile')
  const key = made['key'] ?? ''
  const link = await admin('sign-in', '--email', 'evil@hostile.test')
  const entered = await fetch(`${gateway.baseUrl}/auth/link`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: gateway.baseUrl, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token: new URL(link['url'] ?? '').searchParams.get('token') ?? '' }).toString(),
  })
  const cookie = (entered.headers.getSetCookie().find(text => text.startsWith('br_session=')) ?? '').split(';')[0] ?? ''
  const whoami = (await (await fetch(`${gateway.baseUrl}/v1/me/whoami`, { headers: { authorization: `Bearer ${ownKey}` } })).json()) as {
    user?: { id: number }
  }
  const send: Field['send'] = request => sendTo(gateway.baseUrl, { token: key, ...request })
  const endpoint = { name: 'Evil', model: 'honest-model', base_url: provider.url, upstream_model: 'theirs' }
  const saved = await send({
    path: '/me/endpoints',
    token: null,
    cookie,
    headers: { 'content-type': 'application/json', origin: gateway.baseUrl },
    body: JSON.stringify(endpoint),
  })
  if (saved.status >= 300) throw new Error(`the hostile endpoint was not saved: ${saved.status} ${saved.text}`)
  const begin = (): void => void honest.send({ kind: 'begin', baseUrl: gateway.baseUrl, key: ownKey, memory: `users/${whoami.user?.id ?? 1}/` })
  begin()
  let markMs = Date.now()
  const report = async (): Promise<{ times: number[]; lost: string[] }> => {
    const answer = messageOf(honest, 'report')
    honest.send({ kind: 'report' })
    return (await answer) as unknown as { times: number[]; lost: string[] }
  }
  const lines = (): WatchLine[] =>
    readFileSync(watchFile, 'utf8')
      .split('\n')
      .filter(line => line.endsWith('}'))
      .map(line => JSON.parse(line) as WatchLine)
  const isAlive = (): boolean => gateway.child.exitCode === null && gateway.child.signalCode === null
  return {
    provider,
    store,
    send,
    callOf: (name, more = {}) =>
      JSON.stringify({ model: 'honest-model', provider: 'byoe:evil', max_tokens: 100_000, messages: [{ role: 'user', content: `case:${name}` }], ...more }),
    useStore() {
      const { endpoint: at, bucket, accessKey, secretKey } = store
      return send({
        method: 'PUT',
        path: '/v1/me/memory-store',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ endpoint: at, bucket, access_key: accessKey, secret_key: secretKey, confirm_path_change: true }),
      })
    },
    async mark() {
      await report()
      markMs = Date.now()
    },
    async seen() {
      const endMs = Date.now()
      // Waits for the line that covers the end of the case. A dead process writes none.
      await until(() => !isAlive() || (lines().at(-1)?.at ?? 0) > endMs, 'a line of the watch behind the case', 120_000)
      const window = lines().filter(({ at }) => at > markMs)
      const most = (of: (line: WatchLine) => number): number => window.reduce((max, line) => Math.max(max, of(line)), 0)
      return { pauseMs: most(l => l.pauseMs), wallMs: most(l => l.wallMs), rss: most(l => l.rss), heapUsed: most(l => l.heapUsed), ...(await report()) }
    },
    isAlive,
    output: () => gateway.output().slice(-1500),
    async revive() {
      if (isAlive()) return
      honest.send({ kind: 'pause' })
      gateway = await start()
      begin()
    },
    async stop() {
      honest.disconnect()
      await gateway.kill()
      await Promise.all([provider.close(), store.close()])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function operatorFile(url: string): object {
  const route = { provider: 'honest', upstream_model: 'honest', input_inr_per_mtok: 0, output_inr_per_mtok: 0, source: 'test', as_of: '2026-01-01' }
  return {
    providers: [{ id: 'honest', base_url: url, auth: 'none', residency: 'global' }],
    models: [
      { id: 'honest-model', kind: 'chat', context_length: 1_000_000, tools: true, routes: [route] },
      { id: 'honest-embed', kind: 'embedding', context_length: 8192, dimensions: 64, routes: [route] },
    ],
  }
}

function messageOf(child: ChildProcess, kind: string): Promise<Record<string, unknown>> {
  return new Promise(done => {
    const read = (message: unknown): void => {
      const told = message as Record<string, unknown>
      if (told['kind'] !== kind) return
      child.off('message', read)
      done(told)
    }
    child.on('message', read)
  })
}

/** Sends one request over a new connection. Resolves with status 0 when there was no answer. */
function sendTo(
  baseUrl: string,
  { method = 'POST', path, headers = {}, body, framed, token, cookie, leaveAfterBytes, timeoutMs = 60_000 }: Request,
): Promise<Got> {
  return new Promise(done => {
    let text = ''
    let bytes = 0
    let got: Got = { status: 0, headers: {}, text: '' }
    const sent = requestTo(
      baseUrl + path,
      {
        method,
        agent: false,
        headers: {
          ...(token ? { authorization: `Bearer ${token}` } : {}),
          ...(cookie === undefined ? {} : { cookie }),
          ...(framed === undefined ? {} : { 'transfer-encoding': 'chunked' }),
          ...headers,
        },
      },
      reply => {
        got = { status: reply.statusCode ?? 0, headers: reply.headers, text: '' }
        reply.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (text.length < 4096) text += chunk.toString('latin1').slice(0, 4096)
          if (leaveAfterBytes !== undefined && bytes >= leaveAfterBytes) sent.destroy()
        })
      },
    )
    const timer = setTimeout(() => sent.destroy(new Error('late')), timeoutMs)
    sent.on('error', error => {
      text = text === '' && got.status === 0 ? error.message : text
    })
    sent.on('close', () => {
      clearTimeout(timer)
      done({ ...got, text })
    })
    if (framed !== undefined) {
      sent.flushHeaders()
      sent.once('socket', socket => socket.once('connect', () => void writeParts(socket, framed, false)))
    } else if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) sent.end(body)
    else void writeParts(sent, body)
  })
}

async function writeParts(sent: Writable, parts: AsyncIterable<Buffer> | Iterable<Buffer>, isEnding = true): Promise<void> {
  for await (const part of parts) {
    if (sent.destroyed) return
    if (!sent.write(part)) await drained(sent)
  }
  if (isEnding) sent.end()
}

/** Resolves when there is room again, or when the reader has disconnected. */
function drained(sent: Writable): Promise<void> {
  return new Promise(done => {
    const go = (): void => {
      sent.off('drain', go).off('close', go)
      done()
    }
    sent.once('drain', go).once('close', go)
  })
}
