import { describe, expect, test } from 'vitest'
import { mcpIdentity } from '../../src/mcp/documents/instructions.ts'
import { keepAliveMs, type Listener } from '../../src/mcp/news/listen-stream.ts'
import { ListenStreams } from '../../src/mcp/news/listen-streams.ts'
import type { ChangeSink, Surface } from '../../src/mcp/surface.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { until } from './sample-tools.ts'

/** Opens a stream on a surface whose changes the test sends. */
async function openStream(more: Partial<Listener> = {}) {
  const told: { sink: ChangeSink | null; stopped: number; hungUp: number; isGood: boolean } = { sink: null, stopped: 0, hungUp: 0, isGood: true }
  const surface: Surface = {
    tools: { running: 0, list: () => [], has: () => false, unknown: name => name, run: () => Promise.reject(new Error('none')) },
    resources: { list: async () => ({ resources: [] }), templates: () => [], read: async () => [] },
    changes: {
      lists: ['resources'],
      listen: async (granted, sink) => {
        told.sink = sink
        return { granted, stop: () => told.stopped++ }
      },
    },
  }
  const ticks: (() => void)[] = []
  const clock = {
    ...systemClock,
    every: (ms: number, fn: () => void) => {
      expect(ms).toBe(keepAliveMs)
      ticks.push(fn)
      return () => ticks.splice(ticks.indexOf(fn), 1)
    },
  }
  const streams = new ListenStreams(clock, mcpIdentity('brigade', '1'), { hold: async () => () => undefined, max: 1000 })
  const cut = new AbortController()
  const listener: Listener = {
    owner: 'key:1',
    orgId: 1,
    cut: cut.signal,
    endsAtMs: null,
    isStillGood: async () => told.isGood,
    hangUp: () => told.hungUp++,
    ...more,
  }
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} }
  const notifications = { resourceSubscriptions: ['test://a', 'test://b'], resourcesListChanged: true }
  const body = { jsonrpc: '2.0', id: 7, method: 'subscriptions/listen', params: { notifications, _meta } }
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'subscriptions/listen',
  }
  const leave = new AbortController()
  const request = new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body: JSON.stringify(body), signal: leave.signal })
  const response = await streams.serve(request, body, surface, listener)
  const tick = () => {
    for (const fn of [...ticks]) fn()
  }
  return {
    told,
    streams,
    cut,
    leave,
    tick,
    reader: (response.body as ReadableStream<Uint8Array>).getReader(),
    notify: (uri: string, n: number) => told.sink?.notify({ kind: 'resource', uri, detail: { n } }),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
const messageOf = (value: Uint8Array | undefined): any => JSON.parse(/data: (.*)/.exec(Buffer.from(value ?? []).toString())?.[1] ?? 'null')

describe('a stream of changes', () => {
  test('a slow reader gets one notification for each resource, with the latest details, whatever the number of changes', async () => {
    const { reader, notify, told } = await openStream()
    for (let n = 0; n < 10_000; n++) notify(n % 2 === 0 ? 'test://a' : 'test://b', n)
    told.sink?.notify({ kind: 'resources' })
    expect(messageOf((await reader.read()).value).method).toBe('notifications/subscriptions/acknowledged')
    const messages = []
    while (messages.length < 3 || messages.at(-1)?.method !== 'notifications/resources/list_changed') messages.push(messageOf((await reader.read()).value))
    expect(messages.length).toBeLessThanOrEqual(5)
    const changes = messages.filter(({ params }) => params.uri === 'test://b').flatMap(({ params }) => params._meta['brigade/changes'])
    expect(changes.length).toBeLessThanOrEqual(21)
    expect(changes.at(-1)).toEqual({ n: 9_999 })
    expect(messages.some(({ params }) => params._meta['brigade/more_changes'] > 4_000)).toBe(true)
  })

  test('a reader that never reads is disconnected after some keep-alives', async () => {
    const { told, tick, notify } = await openStream()
    for (let n = 1; n <= 8; n++) {
      expect(told.hungUp).toBe(0)
      notify('test://a', n)
      tick()
      await new Promise(resolve => setImmediate(resolve))
    }
    await until(() => told.hungUp === 1)
  })

  test('after a credential becomes invalid, the stream sends no more changes and ends in good order', async () => {
    const { reader, told, notify } = await openStream()
    expect(messageOf((await reader.read()).value).method).toBe('notifications/subscriptions/acknowledged')
    told.isGood = false
    notify('test://a', 1)
    expect(messageOf((await reader.read()).value)).toMatchObject({ id: 7, result: { resultType: 'complete' } })
    expect((await reader.read()).done).toBe(true)
    expect(told.stopped).toBe(1)
  })

  test('a cut, the end of all streams, and a disconnecting reader each stop the listening once', async () => {
    const first = await openStream()
    first.cut.abort()
    first.streams.endAll()
    await first.reader.read()
    expect(messageOf((await first.reader.read()).value)).toMatchObject({ id: 7, result: {} })
    expect((await first.reader.read()).done).toBe(true)
    expect(first.told.stopped).toBe(1)
    const second = await openStream()
    await second.reader.cancel()
    await until(() => second.told.stopped === 1)
    const third = await openStream()
    third.leave.abort()
    await until(() => third.told.stopped === 1)
  })

  test('a token that has already expired ends its stream immediately', async () => {
    const { told } = await openStream({ endsAtMs: 1, isStillGood: async () => false })
    await until(() => told.stopped === 1)
  })
})
