import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

describe('the public catalog', () => {
  let app: TestApp
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  let models: any[]
  beforeAll(async () => {
    app = await startApp()
    models = (await app.call('GET', '/v1/models', undefined, { token: null })).json.data
  })
  afterAll(() => app.stop())
  const model = (id: string) => models.find(entry => entry.id === id)

  test('CAT-01 the list of models is public and is an object with a data array', async () => {
    const reply = await app.call('GET', '/v1/models', undefined, { token: null })
    expect([reply.status, reply.json.object, Array.isArray(reply.json.data)]).toEqual([200, 'list', true])
    expect(reply.json.data.length).toBeGreaterThan(20)
  })

  test('Codex sends its version and gets the empty extra list that it expects', async () => {
    expect((await app.call('GET', '/v1/models?client_version=0.169.0')).json).toMatchObject({ object: 'list', models: [] })
    expect((await app.call('GET', '/v1/models')).json).not.toHaveProperty('models')
  })

  test('CAT-02 SHAPE-02 an entry has id, prices, residency, languages, context length, tools flag, modalities and routes', () => {
    expect(model('test-model')).toMatchObject({
      id: 'test-model',
      object: 'model',
      owned_by: expect.any(String),
      pricing: { inputINRPerMtok: 10, outputINRPerMtok: 40 },
      residency: 'india',
      languages: expect.any(Array),
      context_length: 100_000,
      tools: true,
      modalities: ['text'],
      supported_parameters: expect.any(Array),
    })
    for (const entry of models) expect(Array.isArray(entry.routes) && Array.isArray(entry.modalities) && Array.isArray(entry.languages), entry.id).toBe(true)
  })

  test('CAT-03 CAT-04 reasoning models list the reasoning modality, and the parameters that they accept for it', () => {
    const thinkers = models.filter(entry => entry.modalities.includes('reasoning') && entry.kind === 'chat')
    expect(thinkers.length).toBeGreaterThan(0)
    expect(thinkers.some(entry => entry.supported_parameters.includes('reasoning') && entry.supported_parameters.includes('reasoning_effort'))).toBe(true)
  })

  test('CAT-05 CAT-21 SHAPE-01 a route has three independent flags, a residency tag and its own prices', () => {
    expect(model('test-model').routes[2]).toEqual({
      provider: 'indus',
      residency: 'india',
      inputINRPerMtok: 30,
      outputINRPerMtok: 120,
      available: true,
      byok_only: false,
      configured: true,
      maintenance: false,
      context_length: 100_000,
    })
    expect(model('byok-model').routes[0]).toMatchObject({ byok_only: true, configured: false, available: true, maintenance: false })
    for (const entry of models) for (const route of entry.routes) expect(['india', 'global'], entry.id).toContain(route.residency)
  })

  test('CAT-07 the modality filter returns the models that have all named modalities', async () => {
    const { data } = (await app.call('GET', '/v1/models?modality=text,reasoning')).json
    expect(data.length).toBeGreaterThan(0)
    for (const entry of data) expect(entry.modalities).toEqual(expect.arrayContaining(['text', 'reasoning']))
  })

  test('CAT-08 IMG-09 each of the fifteen image models is listed with its price per image', () => {
    const ids = [
      'sdxl',
      'flux-1-schnell',
      'flux-1-dev',
      'flux-1-pro',
      'cogview-4',
      'qwen-image',
      'sd-3.5-large',
      'seedream',
      'gemini-image',
      'minimax-image',
      'step-1x',
      'grok-2-image',
      'gpt-image-1',
      'gpt-image-1-mini',
      'dall-e-3',
    ]
    for (const id of ids) expect(model(id)?.inrPerImage, id).toBeGreaterThan(0)
  })

  test('CAT-09 CAT-10 a model is found by its id, plain or percent-encoded, and an unknown id gets 404 model_not_found', async () => {
    expect((await app.call('GET', '/v1/models/test-model')).json.id).toBe('test-model')
    for (const path of ['/v1/models/auto:cheapest', '/v1/models/auto%3Acheapest']) expect((await app.call('GET', path)).json.id, path).toBe('auto:cheapest')
    const unknown = await app.call('GET', '/v1/models/some/unknown')
    expect([unknown.status, unknown.json.error.code]).toEqual([404, 'model_not_found'])
  })

  test('CAT-13 providers show whether they are configured, their residency, and whether they accept own keys', async () => {
    const { data } = (await app.call('GET', '/v1/providers', undefined, { token: null })).json
    expect(data).toContainEqual(expect.objectContaining({ id: 'indus', configured: true, residency: 'india', byok: true, platform_fallback: true }))
    expect(data).toContainEqual(expect.objectContaining({ id: 'openai', configured: false, residency: 'global', platform_fallback: false }))
  })

  test('CAT-19 the public catalog answers even with an invalid bearer credential', async () => {
    for (const path of ['/v1/models', '/v1/providers', '/health'])
      expect((await app.call('GET', path, undefined, { token: 'br-wrong' })).status, path).toBe(200)
  })

  test('CAT-22 no model is listed without a route', () => {
    for (const entry of models) expect(entry.routes.length, entry.id).toBeGreaterThan(0)
  })

  test('CAT-23 prices are numbers of rupees per million tokens, separate for input and output', () => {
    for (const entry of models.filter(each => each.kind === 'chat')) {
      expect(typeof entry.pricing.inputINRPerMtok, entry.id).toBe('number')
      expect(typeof entry.pricing.outputINRPerMtok, entry.id).toBe('number')
    }
    expect(model('gpt-oss-120b').pricing).toEqual({ inputINRPerMtok: 10, outputINRPerMtok: 48 })
  })

  test('VIRT-01 the list contains the virtual models', () => {
    for (const id of [
      'auto',
      'auto:balanced',
      'auto:cheapest',
      'auto:fastest',
      'auto:best',
      'auto:agent',
      'auto:code',
      'auto:reasoning',
      'auto:vision',
      'auto:long-context',
      'auto:sovereign',
    ])
      expect(model(id), id).toBeDefined()
  })
})
