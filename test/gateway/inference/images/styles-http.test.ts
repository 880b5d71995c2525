/** Tests every image provider through the whole gateway. The test server accepts only documented fields. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { type Answer, base64, type ImageProviders, keys, type ProviderName, startImageProviders } from './image-providers.ts'

interface Case {
  readonly model: string
  readonly provider: ProviderName
  /** The request to the provider when the caller's request has all fields. */
  readonly sent: object
  readonly dropped: string | null
  readonly data: readonly object[]
  /** Number of requests for two pictures, including polls of jobs. */
  readonly requests: number
}

const address = (provider: string, index = 0) => ({ url: `https://images.example/${provider}/${index}.png?sig=a%2Bb&exp=1` })
const requested = { prompt: 'a boat', n: 2, size: '1024x768', response_format: 'url', quality: 'high', user: 'u-1' }

const cases: readonly Case[] = [
  {
    model: 'gpt-image-1',
    provider: 'openai',
    sent: { model: 'gpt-image-1', prompt: 'a boat', n: 2, size: '1024x768', quality: 'high', user: 'u-1' },
    dropped: 'response_format',
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    requests: 1,
  },
  {
    model: 'dall-e-3',
    provider: 'openai',
    sent: { model: 'dall-e-3', prompt: 'a boat', size: '1024x768', quality: 'high', user: 'u-1', response_format: 'url' },
    dropped: null,
    data: [
      { ...address('openai'), revised_prompt: 'as asked' },
      { ...address('openai'), revised_prompt: 'as asked' },
    ],
    requests: 2,
  },
  {
    model: 'flux-1-schnell',
    provider: 'together',
    sent: { model: 'black-forest-labs/FLUX.1-schnell', prompt: 'a boat', n: 2, width: 1024, height: 768, response_format: 'url' },
    dropped: 'quality,user',
    data: [
      { index: 0, ...address('together') },
      { index: 1, ...address('together', 1) },
    ],
    requests: 1,
  },
  {
    model: 'flux-1-schnell',
    provider: 'fireworks',
    sent: { prompt: 'a boat', aspect_ratio: '4:3' },
    dropped: 'quality,user,size,response_format',
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    requests: 2,
  },
  {
    model: 'sdxl',
    provider: 'fireworks',
    sent: { prompt: 'a boat', width: 1024, height: 768, samples: 1 },
    dropped: 'quality,user,response_format',
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    requests: 2,
  },
  {
    model: 'grok-2-image',
    provider: 'xai',
    sent: { model: 'grok-2-image', prompt: 'a boat', n: 2, response_format: 'url', user: 'u-1' },
    dropped: 'quality,size',
    data: [
      { ...address('xai'), revised_prompt: 'revised' },
      { ...address('xai', 1), revised_prompt: 'revised' },
    ],
    requests: 1,
  },
  {
    model: 'cogview-4',
    provider: 'zhipu',
    sent: { model: 'cogview-4-250304', prompt: 'a boat', size: '1024x768', quality: 'high', user_id: 'u-1' },
    dropped: null,
    data: [address('zhipu'), address('zhipu')],
    requests: 2,
  },
  {
    model: 'seedream',
    provider: 'bytedance',
    sent: { model: 'seedream-4-0-250828', prompt: 'a boat', size: '1024x768', response_format: 'url' },
    dropped: 'quality,user',
    data: [
      { ...address('bytedance'), size: '1024x768' },
      { ...address('bytedance'), size: '1024x768' },
    ],
    requests: 2,
  },
  {
    model: 'step-1x',
    provider: 'stepfun',
    sent: { model: 'step-1x-medium', prompt: 'a boat', size: '1024x768', response_format: 'url' },
    dropped: 'quality,user',
    data: [
      { seed: 7, finish_reason: 'success', ...address('stepfun') },
      { seed: 7, finish_reason: 'success', ...address('stepfun') },
    ],
    requests: 2,
  },
  {
    model: 'gemini-image',
    provider: 'google',
    sent: {
      contents: [{ role: 'user', parts: [{ text: 'a boat' }] }],
      generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '4:3' } },
    },
    dropped: 'quality,user,size,response_format',
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    requests: 2,
  },
  {
    model: 'sd-3.5-large',
    provider: 'stability',
    sent: { prompt: 'a boat', aspect_ratio: '5:4', model: 'sd3.5-large', mode: 'text-to-image', output_format: 'png' },
    dropped: 'quality,user,size,response_format',
    data: [{ b64_json: base64 }, { b64_json: base64 }],
    requests: 2,
  },
  {
    model: 'minimax-image',
    provider: 'minimax',
    sent: { model: 'image-01', prompt: 'a boat', n: 2, width: 1024, height: 768, response_format: 'url' },
    dropped: 'quality,user',
    data: [address('minimax'), address('minimax', 1)],
    requests: 1,
  },
  {
    model: 'flux-1-pro',
    provider: 'black-forest-labs',
    sent: { prompt: 'a boat', width: 1024, height: 768 },
    dropped: 'quality,user',
    data: [address('bfl'), address('bfl')],
    requests: 8,
  },
  {
    model: 'qwen-image',
    provider: 'alibaba',
    sent: { model: 'qwen-image', input: { prompt: 'a boat' }, parameters: { size: '1472*1104', n: 1 } },
    dropped: 'quality,user,size',
    data: [address('alibaba'), address('alibaba')],
    requests: 8,
  },
]

describe('the styles of image providers', () => {
  let app: TestApp
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({ env: { ...providers.env, IMAGE_POLL_MS: '5', IMAGE_DEADLINE_MS: '3000', CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => providers.reset())
  const make = (provider: ProviderName, body: object) =>
    app.call('POST', '/v1/images/generations', { prompt: 'a boat', provider, upstream_key: keys[provider], ...body })

  test.each(cases)(
    '$model at $provider: the provider gets the supported fields, the caller gets the pictures, and other fields are named as dropped',
    async ({ model, provider, sent, dropped, data, requests }) => {
      const reply = await make(provider, { model, ...requested })
      expect(reply.json).toMatchObject({ data })
      expect(reply.status).toBe(200)
      expect(Number.isInteger(reply.json.created)).toBe(true)
      expect(reply.headers.get('x-br-provider')).toBe(provider)
      expect(reply.headers.get('x-br-dropped-params')).toBe(dropped)
      const [first] = providers.of(provider)
      expect(first?.form ? Object.fromEntries(first.form.entries()) : first?.json).toEqual(sent)
      expect(providers.seen).toHaveLength(requests)
      for (const { headers } of providers.seen) expect(headers['user-agent']).toMatch(/^brigade\//)
    },
  )

  test.each(cases)('$model at $provider returns base64 if the provider supports it', async ({ model, provider }) => {
    const reply = await make(provider, { model, response_format: 'b64_json' })
    expect(reply.status).toBe(200)
    const isLost = reply.headers.get('x-br-dropped-params') === 'response_format'
    expect(reply.json.data[0]).toHaveProperty(isLost ? 'url' : 'b64_json')
    if (!isLost) expect(reply.json.data[0].b64_json).toBe(base64)
  })

  test.each(cases)('$model at $provider: a wrong key and a failure of the provider become documented errors', async ({ model, provider }) => {
    providers.answer(({ path }) => (path === '/credits' ? undefined : { status: 401, body: { message: `bad key ${keys[provider]}` } }))
    const refused = await make(provider, { model })
    expect([refused.status, refused.json.error.code]).toEqual([502, 'all_routes_failed'])
    expect(refused.text).not.toContain(keys[provider])
    providers.answer(() => ({ status: 200, body: 'not at all what was asked for' }))
    expect((await make(provider, { model })).status).toBe(502)
    providers.answer(() => ({ status: 200, body: {} }))
    expect((await make(provider, { model })).status).toBe(502)
  })

  test('fields of one provider are sent to that provider, and named as dropped elsewhere', async () => {
    expect((await make('together', { model: 'flux-1-dev', steps: 12, seed: 3 })).status).toBe(200)
    expect(providers.of('together')[0]?.json).toMatchObject({ steps: 12, seed: 3 })
    const gemini = await make('google', { model: 'gemini-image', steps: 12, seed: 3 })
    expect(gemini.headers.get('x-br-dropped-params')).toBe('steps,seed')
    const more = await make('bytedance', { model: 'seedream', sequential_image_generation: 'auto', sequential_image_generation_options: { max_images: 15 } })
    expect([more.status, more.headers.get('x-br-dropped-params')]).toEqual([200, 'sequential_image_generation,sequential_image_generation_options'])
  })

  const filtered: readonly [string, ProviderName, Answer][] = [
    ['gemini-image', 'google', { body: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } } }],
    ['gemini-image', 'google', { body: { candidates: [{ content: { parts: [] }, finishReason: 'IMAGE_SAFETY' }] } }],
    ['sd-3.5-large', 'stability', { body: { image: base64, finish_reason: 'CONTENT_FILTERED', seed: 1 } }],
    ['flux-1-schnell', 'fireworks', { body: { base64: [], finishReason: 'CONTENT_FILTERED' } }],
    ['sdxl', 'fireworks', { body: Buffer.from(base64, 'base64'), type: 'image/png', headers: { 'finish-reason': 'CONTENT_FILTERED' } }],
    ['minimax-image', 'minimax', { body: { base_resp: { status_code: 1026, status_msg: 'sensitive' } } }],
    ['step-1x', 'stepfun', { body: { created: 1, data: [{ seed: 1, finish_reason: 'content_filtered' }] } }],
  ]
  test.each(filtered)('%s at %s: filtered content is a 400 that names the reason, without a picture', async (model, provider, answer) => {
    providers.answer(() => answer)
    const reply = await make(provider, { model })
    expect([reply.status, reply.json.error.code]).toEqual([400, 'upstream_client_error'])
    expect(reply.json.error.message).toContain(`${provider} refused the request`)
  })

  test('a moderated job is 400, and a failed or unknown one is 502', async () => {
    const ended: readonly [string, ProviderName, object, number][] = [
      ['flux-1-pro', 'black-forest-labs', { status: 'Request Moderated' }, 400],
      ['flux-1-pro', 'black-forest-labs', { status: 'Content Moderated' }, 400],
      ['flux-1-pro', 'black-forest-labs', { status: 'Error' }, 502],
      ['flux-1-pro', 'black-forest-labs', { status: 'Ready', result: {} }, 502],
      ['qwen-image', 'alibaba', { output: { task_status: 'FAILED', code: 'DataInspectionFailed', message: 'inappropriate' } }, 400],
      ['qwen-image', 'alibaba', { output: { task_status: 'FAILED', code: 'InternalError.Timeout', message: 'slow' } }, 502],
      ['qwen-image', 'alibaba', { output: { task_status: 'UNKNOWN' } }, 502],
      ['qwen-image', 'alibaba', { output: { task_status: 'SUCCEEDED', results: [{ code: 'DataInspectionFailed', message: 'x' }] } }, 502],
    ]
    for (const [model, provider, body, status] of ended) {
      providers.answer(({ method, path }) => (method === 'GET' && path !== '/credits' ? { body } : undefined))
      expect((await make(provider, { model })).status, JSON.stringify(body)).toBe(status)
    }
  })

  test('a poll with a temporary failure does not end the job', async () => {
    let looks = 0
    providers.answer(({ method, path }) =>
      method === 'GET' && path.startsWith('/get_result') && ++looks < 3 ? { status: looks === 1 ? 503 : 429, body: {} } : undefined,
    )
    expect((await make('black-forest-labs', { model: 'flux-1-pro' })).json.data).toEqual([address('bfl')])
  })

  test('the provider key of a job is not sent to another host', async () => {
    for (const polling_url of [
      'http://127.0.0.1:9/steal',
      'https://evil.example/x',
      'https://evil.bfl.ai.example/x',
      'not a url',
      7,
      `http://user@${providers.origin.slice(7)}/x`,
    ]) {
      providers.answer(({ method }) => (method === 'POST' ? { body: { id: 'j', polling_url } } : undefined))
      const reply = await make('black-forest-labs', { model: 'flux-1-pro' })
      expect(reply.status, String(polling_url)).toBe(502)
      expect(reply.json.error.message).toContain('not its own')
    }
    providers.answer(({ method }) => (method === 'POST' ? { body: { output: { task_id: '../../steal', task_status: 'PENDING' } } } : undefined))
    expect((await make('alibaba', { model: 'qwen-image' })).status).toBe(502)
    expect(providers.seen.every(({ method }) => method === 'POST')).toBe(true)
  })

  test('an error about money or limits inside a 200 is treated as that error', async () => {
    providers.answer(() => ({ body: { base_resp: { status_code: 1008, status_msg: 'insufficient balance' } } }))
    const poor = await make('minimax', { model: 'minimax-image' })
    expect([poor.status, poor.json.error.code, poor.json.own_key]).toEqual([502, 'all_routes_failed', 'upstream_key'])
    providers.answer(() => ({ body: { base_resp: { status_code: 1002, status_msg: 'rate limit' } } }))
    expect((await make('minimax', { model: 'minimax-image' })).status).toBe(502)
  })

  test('the test of an own key of Black Forest Labs sends it in x-key', async () => {
    const cookie = await app.signIn()
    const good = await app.call('PUT', '/me/byok/black-forest-labs', { key: keys['black-forest-labs'] }, { cookie })
    expect([good.status, good.json.verified]).toEqual([200, true])
    expect((await app.call('PUT', '/me/byok/black-forest-labs', { key: 'another-key' }, { cookie })).status).toBe(400)
    expect((await make('black-forest-labs', { model: 'flux-1-pro', upstream_key: undefined })).status).toBe(200)
  })
})
