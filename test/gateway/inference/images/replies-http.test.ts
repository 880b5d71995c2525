/** Replies of image providers without a picture, or with pictures that are too large. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { type Answer, base64, type ImageProviders, keys, startImageProviders } from './image-providers.ts'

const mebibyte = 1024 * 1024

describe('replies of image providers', () => {
  let app: TestApp
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({ env: { ...providers.env, IMAGE_POLL_MS: '5', CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => providers.reset())
  const make = (body: object) => app.call('POST', '/v1/images/generations', { prompt: 'a boat', ...body })
  const dallE = { model: 'dall-e-3', upstream_key: keys.openai, response_format: 'b64_json' }
  const picture = (bytes: number): Answer => ({ body: Buffer.from(JSON.stringify({ created: 1, data: [{ b64_json: 'A'.repeat(bytes) }] })) })

  test('all pictures of one call may have 64 MiB together, and only those that fit are returned and charged', async () => {
    const value = async () => Math.round((await app.call('GET', '/v1/usage')).json.totals.value_inr * 1e6)
    const before = await value()
    const half = picture(31 * mebibyte)
    providers.answer(() => half)
    const some = await make({ ...dallE, n: 3 })
    expect(some.status).toBe(200)
    expect([1, 2]).toContain(some.json.data.length)
    // The price is ₹3.84 for an image.
    expect((await value()) - before).toBe(some.json.data.length * 3_840_000)
    const tooLarge = picture(65 * mebibyte)
    providers.answer(() => tooLarge)
    const none = await make({ ...dallE, n: 1 })
    expect([none.status, none.json.error.code]).toEqual([502, 'upstream_reply_too_large'])
    // The picture was made, so it is charged.
    expect((await value()) - before).toBe((some.json.data.length + 1) * 3_840_000)
  }, 90_000)

  test('polls of unfinished jobs use no room', async () => {
    const pending: Answer = { body: Buffer.from(JSON.stringify({ id: 'j', status: 'Pending', preview: 'A'.repeat(20 * mebibyte) })) }
    let looks = 0
    providers.answer(({ method, path }) => (method === 'GET' && path.startsWith('/get_result') && ++looks < 5 ? pending : undefined))
    const reply = await make({ model: 'flux-1-pro', provider: 'black-forest-labs', upstream_key: keys['black-forest-labs'] })
    expect([reply.status, reply.json.data?.length], reply.text).toEqual([200, 1])
  })

  const odd: readonly (readonly [string, Answer, number, string])[] = [
    ['a page', { body: Buffer.from('<html>'), type: 'text/html' }, 502, 'all_routes_failed'],
    ['nothing', { status: 204, body: Buffer.alloc(0) }, 502, 'all_routes_failed'],
    ['another address', { status: 302, body: {}, headers: { location: 'http://127.0.0.1:9/' } }, 502, 'all_routes_failed'],
    ['an error about an unknown model', { status: 404, body: { error: { message: 'an error about an unknown model' } } }, 404, 'upstream_client_error'],
    ['no money', { status: 402, body: { error: { message: 'pay' } } }, 502, 'all_routes_failed'],
    ['a limit', { status: 429, body: { error: { message: 'slowly' } }, headers: { 'retry-after': '7' } }, 502, 'all_routes_failed'],
    ['the bytes of a picture instead of JSON', { body: Buffer.from(base64, 'base64'), type: 'image/png' }, 502, 'all_routes_failed'],
    [
      'an error of a content filter',
      { status: 400, body: { error: { message: 'Your request was rejected', code: 'moderation_blocked' } } },
      400,
      'moderation_blocked',
    ],
  ]
  test.each(odd)('%s', async (_what, answer, status, code) => {
    providers.answer(() => answer)
    for (const n of [1, 2]) {
      const reply = await make({ ...dallE, n })
      expect([reply.status, reply.json.error.code], reply.text).toEqual([status, code])
      if (answer !== 'hang' && answer.headers?.['retry-after'] !== undefined) expect(reply.headers.get('retry-after')).toBe('7')
    }
    expect(providers.seen).toHaveLength(3)
  })

  test('a route with another provider API serves after any failure of the first route', async () => {
    const cookie = await app.signIn()
    for (const provider of ['together', 'fireworks'] as const)
      expect((await app.call('PUT', `/me/byok/${provider}`, { key: keys[provider] }, { cookie })).status).toBe(200)
    providers.reset()
    for (const [what, answer] of odd.filter(([, , status]) => status >= 500)) {
      providers.answer(({ provider }) => (provider === 'together' ? answer : undefined))
      const reply = await make({ model: 'flux-1-schnell', quality: 'high', size: '1024x768' })
      expect([reply.status, reply.headers.get('x-br-provider')], what).toEqual([200, 'fireworks'])
      // The named fields are those that the serving provider does not support.
      expect(reply.headers.get('x-br-dropped-params')).toBe('quality,size')
      expect(reply.json.data).toEqual([{ b64_json: base64 }])
    }
    for (const provider of ['together', 'fireworks']) await app.call('DELETE', `/me/byok/${provider}`, undefined, { cookie })
  })
})
