/**
 * Sends the exchanges of test/wire/<format>/<case>/ through one real gateway. Compares the request to the provider and the reply to the client with the
 * golden files. See README.md.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../harness/app.ts'
import type { RecordedRequest, UpstreamScript, UpstreamServer } from '../harness/upstream-server.ts'
import { type GoldenCase, goldenCases, streamOf, type UpstreamReply } from './golden-case.ts'

const updates = process.env['UPDATE_GOLDEN'] === '1'
const caseCount = 89

const all = goldenCases()
let app: TestApp

beforeAll(async () => {
  app = await startApp({ dialects: true, env: { CIRCUIT_OPEN_MS: '1' } })
})
afterAll(() => app.stop())

for (const golden of all) {
  const title = `${golden.cases.length === 1 ? 'case' : 'cases'} ${golden.cases.join(', ')}: ${golden.title} (${golden.name})`
  const { shownBy } = golden
  if (shownBy !== null) {
    test(`${title}: covered by ${shownBy}`, () => {
      const text = existsSync(shownBy) ? readFileSync(shownBy, 'utf8') : ''
      for (const number of golden.cases) expect(text, `${shownBy} has a test whose title says "case ${number}"`).toMatch(new RegExp(`case ${number}\\b`))
    })
    continue
  }
  test(title, async () => {
    const files = await play(golden, 'events')
    compare(golden, files)
    if (!golden.upstreams.some(({ stream }) => stream !== undefined)) return
    const again = await play(golden, 'bytes')
    expect(again, 'the same stream, byte by byte').toEqual(files)
  })
}

test('docs/reference/translation.md mentions every case', () => {
  const rows = readFileSync('docs/reference/translation.md', 'utf8').matchAll(/^\| ([\d, ]+) \|/gm)
  const told = [...rows].flatMap(([, numbers = '']) => numbers.split(',').map(Number)).sort((a, b) => a - b)
  expect(told).toEqual(Array.from({ length: caseCount }, (_, index) => index + 1))
})

test('each of the 89 cases has a golden', () => {
  const shown = new Set(all.flatMap(({ cases }) => cases))
  const missing = Array.from({ length: caseCount }, (_, index) => index + 1).filter(number => !shown.has(number))
  expect(missing).toEqual([])
})

type Files = Readonly<Record<string, string>>

function serverOf({ dialect, server = 'alpha' }: UpstreamReply): UpstreamServer {
  if (dialect === 'openai') return app[server]
  if (dialect === 'anthropic') return app.others.claude
  return dialect === 'gemini' ? app.others.gem : app.others.resp
}

/** Runs one exchange. Returns the content of its golden files. */
async function play(golden: GoldenCase, cut: 'events' | 'bytes'): Promise<Files> {
  const { client, upstreams } = golden
  if (client === null) return {}
  const servers = [app.alpha, app.beta, app.indus, app.others.claude, app.others.gem, app.others.resp]
  for (const server of servers) server.reset()
  for (const upstream of upstreams) serverOf(upstream).script(scriptOf(golden, upstream, cut))
  const headers = Object.fromEntries(Object.entries(client.headers).map(([name, value]) => [name.toLowerCase(), value.replaceAll('$KEY', app.key)]))
  const carriesKey = ['authorization', 'x-api-key', 'x-br-api-key'].some(name => name in headers)
  const reply = await app.call('POST', client.path, client.body, {
    ...(carriesKey ? { token: null } : {}),
    headers: { 'content-type': 'application/json', ...headers },
  })
  const dialed = servers.flatMap(server => server.requests)
  expect(dialed.length, 'attempts').toBe(upstreams.length)
  const sent = dialed.map(request => sentOf(request, client.body))
  const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const ids = new Ids(golden.ownText)
  return {
    ...(sent.length === 0 ? {} : { 'upstream-request.json': ids.in(pretty(sent.length === 1 ? sent[0] : sent)) }),
    [isStream ? 'client-reply.sse' : 'client-reply.json']: ids.in(isStream || reply.json === null ? reply.text : pretty(reply.json)),
    'client-reply.headers.json': ids.in(pretty(headersOf(reply))),
  }
}

function scriptOf(golden: GoldenCase, { status, headers, body, stream, breaks }: UpstreamReply, cut: 'events' | 'bytes'): UpstreamScript {
  const common = headers === undefined ? {} : { headers }
  if (stream === undefined) return { ...common, status: status ?? 200, body }
  return { ...common, rawStream: streamOf(golden, stream, cut), ...(breaks ? { breakAfterRaw: true } : {}) }
}

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Returns what a provider received, without the headers that every HTTP client sends. */
function sentOf(request: RecordedRequest, clientBody: string): object {
  const plumbing = new Set(['host', 'connection', 'content-length', 'user-agent', 'accept', 'accept-encoding', 'content-type', 'transfer-encoding'])
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !plumbing.has(name)))
  const text = request.raw.toString('utf8')
  return { path: request.path, headers, ...(text === clientBody ? { body_is_the_clients_byte_for_byte: true } : {}), body: request.json ?? text }
}

function headersOf(reply: TestReply): object {
  const told = [...reply.headers].filter(([name]) => name.startsWith('x-br-') || name === 'content-type' || name === 'retry-after')
  return { status: reply.status, ...Object.fromEntries(told.map(([name, value]) => [name, name === 'x-br-latency-ms' ? '<ms>' : value])) }
}

const idPattern =
  /\b(?:chatcmpl-|(?:msg|resp|rs|fc|ctc|call|toolu|req|item|ig|ws|srvtoolu)_)[A-Za-z0-9]{12,}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g

/** Replaces every id that the gateway made by a name with its number, and every time by one value. Ids that the case states stay. */
class Ids {
  readonly #names = new Map<string, string>()
  readonly #ownText: string
  constructor(ownText: string) {
    this.#ownText = ownText
  }

  in(text: string): string {
    return text
      .replace(/("(?:created|created_at|completed_at)": ?)(\d{9,})/g, (whole, key: string, value: string) =>
        this.#ownText.includes(value) ? whole : `${key}0`,
      )
      .replace(idPattern, id => (this.#ownText.includes(id) ? id : this.#nameOf(id)))
  }

  #nameOf(id: string): string {
    const known = this.#names.get(id)
    if (known !== undefined) return known
    const name = `${/^[a-z]+[_-](?=[A-Za-z0-9]{12})/.exec(id)?.[0] ?? 'id-'}made-${this.#names.size + 1}`
    this.#names.set(id, name)
    return name
  }
}

/** Compares the result with the golden files of the case, or writes them. */
function compare(golden: GoldenCase, files: Files): void {
  const known = ['upstream-request.json', 'client-reply.json', 'client-reply.sse', 'client-reply.headers.json']
  for (const name of known) {
    const at = join(golden.folder, name)
    const made = files[name]
    if (updates && made === undefined) rmSync(at, { force: true })
    else if (updates && made !== undefined) writeFileSync(at, made)
    else if (made === undefined) expect(existsSync(at), `${golden.name}/${name} is not made any more`).toBe(false)
    else expect(made, `${golden.name}/${name}; UPDATE_GOLDEN=1 writes it`).toBe(existsSync(at) ? readFileSync(at, 'utf8') : '')
  }
}
