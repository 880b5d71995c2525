import type { IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUpstreams, type UpstreamTarget } from '../../../src/gateway/tools/upstream/upstream.ts'
import { UpstreamError } from '../../../src/gateway/tools/upstream/upstream-error.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { createOutbound, type Outbound } from '../../../src/platform/outbound/outbound.ts'
import { until } from '../../harness/until.ts'
import { type HostileMode, type HostileServer, startHostileServer } from './hostile-server.ts'
import { type McpFixture, startMcpFixture } from './mcp-server.ts'

const limits = { connectTimeoutMs: 2000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000 }
const secret = 'Bearer top-secret-token'

let modern: McpFixture
let legacy: McpFixture
let hostile: HostileServer
let outbound: Outbound
let guarded: Outbound

beforeAll(async () => {
  ;[modern, legacy, hostile] = await Promise.all([startMcpFixture('modern'), startMcpFixture('legacy'), startHostileServer('hang')])
  outbound = createOutbound({ ...limits, allow: [modern.hostPort, legacy.hostPort, hostile.hostPort, '127.0.0.1:9'] })
  guarded = createOutbound({ ...limits, allow: [] })
})
afterAll(async () => {
  await Promise.all([outbound.close(), guarded.close(), modern.close(), legacy.close(), hostile.close()])
})

const upstreamsOn = (client: Outbound) => createUpstreams({ outbound: client, clock: systemClock, version: '1.2.3' })
const never = new AbortController().signal
const targetOf = (url: string, more: Partial<UpstreamTarget> = {}): UpstreamTarget => ({
  url,
  header: { name: 'Authorization', value: secret },
  timeoutMs: 5000,
  ...more,
})
const options = { signal: never, maxResultBytes: 1_000_000 }

async function failureOf(work: Promise<unknown>): Promise<UpstreamError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof UpstreamError)) throw error ?? new Error('it did not fail')
  return error
}

describe.each(['modern', 'legacy'] as const)('a server of the %s era', era => {
  const server = (): McpFixture => (era === 'modern' ? modern : legacy)

  it('lists its tools with members that nobody knows', async () => {
    const found = await upstreamsOn(outbound).listTools(targetOf(server().url), never)
    expect(found.era).toBe(era)
    expect(found.tools.map(tool => tool.name)).toEqual(server().tools.map(tool => tool['name']))
    expect(found.tools[0]).toMatchObject({ 'x-unknown': { kept: true }, annotations: { readOnlyHint: true } })
  })

  it('gets the arguments and its own credential, and none of the headers of others', async () => {
    const upstreams = upstreamsOn(outbound)
    const result = await upstreams.callTool(targetOf(server().url), 'echo', { text: 'hi' }, options)
    expect(result.content).toEqual([{ type: 'text', text: 'echo: hi' }])
    const headers: IncomingHttpHeaders = server().calls.at(-1)?.headers ?? {}
    expect(headers['authorization']).toBe(secret)
    expect(headers['accept-encoding']).toBe('identity')
    const known = /^(accept|accept-encoding|authorization|connection|content-length|content-type|host|mcp-.*|transfer-encoding|user-agent)$/
    expect(Object.keys(headers).filter(name => !known.test(name))).toEqual([])
  })

  it('sends every kind of content', async () => {
    const result = await upstreamsOn(outbound).callTool(targetOf(server().url), 'all-kinds', {}, options)
    expect(result.content.map(({ type }) => type)).toEqual(['text', 'image', 'audio', 'resource_link', 'resource'])
    expect(result.content[0]).toMatchObject({ annotations: { audience: ['user'] } })
    expect(result.structuredContent).toEqual({ answer: 42, list: [1, 2] })
    expect((await upstreamsOn(outbound).callTool(targetOf(server().url), 'fails', {}, options)).isError).toBe(true)
  })

  it('reports progress', async () => {
    const notes: unknown[] = []
    await upstreamsOn(outbound).callTool(targetOf(server().url), 'steps', {}, { ...options, onProgress: note => notes.push(note) })
    expect(notes).toMatchObject([
      { progress: 1, message: 'one' },
      { progress: 2, message: 'two' },
    ])
  })

  it('sees the cancel of a call', async () => {
    const cut = new AbortController()
    const call = upstreamsOn(outbound).callTool(targetOf(server().url), 'wait', {}, { ...options, signal: cut.signal })
    await until(() => server().calls.at(-1)?.name === 'wait', 'the call arrives')
    const seen = server().calls.at(-1)
    cut.abort(new Error('enough'))
    const error = await failureOf(call)
    expect(error).toMatchObject({ kind: 'cancelled', isSent: true })
    await until(() => seen?.cancelled === true, 'the server sees the cancel')
  })

  it('never gets its secret back into a result', async () => {
    const result = await upstreamsOn(outbound).callTool(targetOf(server().url), 'headers', {}, options)
    expect(JSON.stringify(result)).not.toContain('top-secret')
    expect(JSON.stringify(result)).toContain('[secret of the server]')
  })

  it('keeps the result within its bound', async () => {
    const upstreams = upstreamsOn(outbound)
    const small = await failureOf(upstreams.callTool(targetOf(server().url), 'big', { bytes: 20_000 }, { ...options, maxResultBytes: 10_000 }))
    expect(small).toMatchObject({ kind: 'too_large', isSent: true })
    expect(small.facts.sizeBytes).toBeGreaterThan(20_000)
    expect(small.facts.sizeBytes).toBeLessThan(20_200)
    const large = await failureOf(upstreams.callTool(targetOf(server().url), 'big', { bytes: 2_000_000 }, { ...options, maxResultBytes: 10_000 }))
    expect(large.kind).toBe('too_large')
  })
})

it('a server of the modern era is asked once for its era', async () => {
  const upstreams = upstreamsOn(outbound)
  await upstreams.callTool(targetOf(modern.url), 'echo', { text: 'a' }, options)
  const before = modern.requests.length
  await upstreams.callTool(targetOf(modern.url), 'echo', { text: 'b' }, options)
  expect(modern.requests.length - before).toBe(1)
  expect(modern.requests.every(({ method }) => method === 'POST')).toBe(true)
})

it('a session of a legacy server ends with its call', async () => {
  const before = legacy.requests.filter(({ method }) => method === 'DELETE').length
  await upstreamsOn(outbound).callTool(targetOf(legacy.url), 'echo', { text: 'a' }, options)
  await until(() => legacy.requests.filter(({ method }) => method === 'DELETE').length > before, 'the session ends')
})

describe('a hostile server', () => {
  const modes: readonly (readonly [string, HostileMode, object])[] = [
    ['401', { status: 401 }, { kind: 'unauthorized', facts: { status: 401 } }],
    ['403 with a larger scope', { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="all"' } }, { kind: 'unauthorized' }],
    ['404', { status: 404 }, { kind: 'protocol', facts: { status: 404 } }],
    ['429 with a time', { status: 429, headers: { 'retry-after': '7' } }, { kind: 'unavailable', facts: { status: 429, retryAfterSeconds: 7 } }],
    ['500', { status: 500 }, { kind: 'unavailable', facts: { status: 500 } }],
    ['a redirect', { status: 302, headers: { location: 'http://169.254.169.254/' } }, { kind: 'protocol', facts: { status: 302 } }],
    ['silence before the headers', 'hang', { kind: 'timeout' }],
    ['silence in the middle of a stream', 'hang-mid-stream', { kind: 'timeout' }],
    ['comments without an end', 'comments', { kind: 'too_large' }],
    ['a huge result', 'huge', { kind: 'too_large' }],
    ['a compressed result', 'gzip', { kind: 'protocol' }],
    ['a result of 20,000 levels', 'deep', { kind: 'protocol' }],
    ['an answer to another request', 'wrong-id', { kind: 'protocol' }],
    ['a stream without the answer', 'no-answer', { kind: 'protocol' }],
    ['broken JSON', 'broken-json', { kind: 'protocol' }],
    ['a question back', 'asks', { kind: 'protocol' }],
    ['a closed connection', 'drop', { kind: 'unavailable' }],
  ]
  it.each(modes)('that answers with %s gets one call and a typed error', async (_name, mode, expected) => {
    hostile.mode = mode
    hostile.calls = 0
    const isSlow = (expected as { kind: string }).kind === 'timeout'
    const error = await failureOf(upstreamsOn(outbound).callTool(targetOf(hostile.url, isSlow ? { timeoutMs: 300 } : {}), 'x', {}, options))
    expect(error).toMatchObject({ ...expected, isSent: true })
    expect(error.message).not.toContain('secret')
    expect(hostile.calls).toBe(1)
  })

  it('gets its text into an error without its secret', async () => {
    hostile.mode = 'rpc-error'
    const error = await failureOf(upstreamsOn(outbound).callTool(targetOf(hostile.url), 'x', {}, options))
    expect(error).toMatchObject({ kind: 'rpc', facts: { rpcCode: -32602, rpcMessage: 'Unknown tool: hello; [secret of the server]' } })
  })

  it('that answers twice is heard once', async () => {
    hostile.mode = 'two-answers'
    const result = await upstreamsOn(outbound).callTool(targetOf(hostile.url), 'x', {}, options)
    expect(result.content).toEqual([{ type: 'text', text: 'first' }])
  })

  it('sees the connection close when the deadline ends a call', async () => {
    hostile.mode = 'hang'
    hostile.hungUp = false
    await failureOf(upstreamsOn(outbound).callTool(targetOf(hostile.url, { timeoutMs: 200 }), 'x', {}, options))
    await until(() => hostile.hungUp, 'the connection closes')
  })

  it.each(['cursor-loop', 'endless-pages'] as const)('with %s has no list of tools', async mode => {
    hostile.mode = mode
    expect(await failureOf(upstreamsOn(outbound).listTools(targetOf(hostile.url), never))).toMatchObject({ kind: 'protocol', isSent: false })
  })
})

it('a private address is refused before a byte leaves', async () => {
  const before = modern.requests.length
  const error = await failureOf(upstreamsOn(guarded).callTool(targetOf(modern.url), 'echo', { text: 'a' }, options))
  expect(error).toMatchObject({ kind: 'blocked_address', isSent: false })
  expect(modern.requests.length).toBe(before)
})

it('a server that takes no connection got nothing', async () => {
  const error = await failureOf(upstreamsOn(outbound).callTool(targetOf('http://127.0.0.1:9/mcp'), 'x', {}, options))
  expect(error).toMatchObject({ kind: 'unavailable', isSent: false })
})
