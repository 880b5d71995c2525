import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { modelPageOf } from '../../../src/gateway/byok/model-list.ts'
import { probeKey } from '../../../src/gateway/byok/probe.ts'
import type { Provider } from '../../../src/gateway/providers/provider.ts'
import { createOutbound, type Outbound } from '../../../src/platform/outbound/outbound.ts'
import { Secret } from '../../../src/platform/security/secret.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const ids = (from: number, count: number) => Array.from({ length: count }, (_, index) => ({ id: `m${from + index}` }))

describe('the test of a key at its provider', () => {
  let upstream: UpstreamServer
  let outbound: Outbound
  beforeAll(async () => {
    upstream = await startUpstream()
    outbound = createOutbound({ connectTimeoutMs: 1000, firstByteTimeoutMs: 5000, streamIdleTimeoutMs: 5000, allow: [] })
  })
  beforeEach(() => upstream.reset())
  afterAll(async () => {
    await outbound.close()
    await upstream.close()
  })

  const provider = (more: Partial<Provider> = {}): Provider => ({
    id: 'p',
    name: 'P',
    dialect: 'openai',
    baseUrl: upstream.url,
    auth: 'bearer',
    residency: 'global',
    byok: true,
    keyShape: null,
    quirks: [],
    platformKey: null,
    configured: false,
    ...more,
  })
  const probe = (more: Partial<Provider> = {}, timeoutMs = 5000) =>
    probeKey(provider(more), new Secret('the-key'), { dial: request => outbound.toProvider(request), timeoutMs })
  const sent = () => upstream.requests.map(({ path, headers }) => ({ path, headers }))

  test('for anthropic, the test sends x-api-key and the version, and reads all pages', async () => {
    upstream.script([
      { body: { data: ids(0, 3), has_more: true, first_id: 'm0', last_id: 'm2' } },
      { body: { data: ids(3, 1), has_more: false, last_id: 'm3' } },
    ])
    expect(await probe({ dialect: 'anthropic', auth: 'x-api-key' })).toEqual({ kind: 'ok', proven: true, models: ['m0', 'm1', 'm2', 'm3'] })
    expect(sent().map(({ path }) => path)).toEqual(['/v1/models?limit=1000', '/v1/models?limit=1000&after_id=m2'])
    for (const { headers } of sent()) {
      expect([headers['x-api-key'], headers['anthropic-version'], headers.authorization]).toEqual(['the-key', '2023-06-01', undefined])
    }
  })

  test('for gemini, the test sends x-goog-api-key, uses page tokens and removes models/ from the ids', async () => {
    upstream.script([{ body: { models: [{ name: 'models/gemini-a' }], nextPageToken: 'n&1' } }, { body: { models: [{ name: 'models/gemini-b' }] } }])
    expect(await probe({ dialect: 'gemini' })).toEqual({ kind: 'ok', proven: true, models: ['gemini-a', 'gemini-b'] })
    expect(sent().map(({ path }) => path)).toEqual(['/v1/models?pageSize=1000', '/v1/models?pageSize=1000&pageToken=n%261'])
    for (const { headers } of sent()) expect([headers['x-goog-api-key'], headers.authorization]).toEqual(['the-key', undefined])
  })

  test('of an endless list, ten pages are read, and at most 2,000 models are stored', async () => {
    let page = 0
    upstream.script(() => ({ body: { data: ids(page++ * 10, 10), has_more: true, last_id: `m${page}` } }))
    expect(await probe({ dialect: 'anthropic' })).toMatchObject({ kind: 'ok', models: { length: 100 } })
    expect(upstream.requests).toHaveLength(10)
    upstream.reset()
    upstream.script({ body: { data: ids(0, 3000) } })
    expect(await probe()).toMatchObject({ kind: 'ok', models: { length: 2000 } })
  })

  test('a provider that does not answer is given up in time, and a huge list is not read', async () => {
    upstream.script({ hang: true })
    expect(await probe({}, 100)).toEqual({ kind: 'unreachable', why: 'TimeoutError' })
    upstream.script({ body: `{"data":[${'"x",'.repeat(3_000_000)}"x"]}` })
    expect(await probe()).toEqual({ kind: 'unreachable', why: 'BodyTooLargeError' })
    upstream.script({ reset: true })
    expect(await probe()).toMatchObject({ kind: 'unreachable' })
    expect(await probe({ baseUrl: 'http://127.0.0.1:1/v1' })).toEqual({ kind: 'unreachable', why: 'ECONNREFUSED' })
  })

  test('the paths of the key check and of the list of models may be outside the base path; they are relative to the base URL', async () => {
    upstream.script({ body: { email: 'a@b.test' } })
    expect(await probe({ modelsPath: null, keyCheckPath: '../v9/user/account' })).toEqual({ kind: 'ok', proven: true, models: [] })
    expect(sent().map(({ path }) => path)).toEqual(['/v9/user/account'])
    upstream.reset()
    upstream.script({ status: 401, body: {} })
    expect(await probe({ modelsPath: 'lists/models', auth: 'api-key' })).toEqual({ kind: 'rejected' })
    expect(sent().map(({ path, headers }) => [path, headers['api-key'], headers.authorization])).toEqual([['/v1/lists/models', 'the-key', undefined]])
  })

  test('an unknown 400 does not count as a refusal of the key', async () => {
    upstream.script({ status: 400, body: { error: 'Incorrect API key provided: th***ey.' } })
    expect(await probe()).toEqual({ kind: 'rejected' })
    upstream.script({ status: 400, body: { error: 'maintenance' } })
    expect(await probe()).toEqual({ kind: 'unreachable', why: 'it answered 400' })
  })
})

test('lists of models are read in several forms, and ids that cannot be sent in a request are left out', () => {
  expect(modelPageOf('[{"id":"a"},"b",{"name":"c"},{"id":"d d"},{"id":""},null,7]')).toEqual({ models: ['a', 'b', 'c'], next: null })
  expect(modelPageOf('{"data":[{"id":"models/x"}],"has_more":true,"last_id":"x"}')).toEqual({ models: ['x'], next: 'x' })
  for (const text of ['', '<html>', '{}', '"x"', 'null', '{"data":{}}']) expect(modelPageOf(text)).toBeNull()
})
