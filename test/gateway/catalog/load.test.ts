import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toModel } from '../../../src/gateway/catalog/loading/build-snapshot.ts'
import { modelsFile, operatorFileJsonSchema, providersFile } from '../../../src/gateway/catalog/loading/file-schema.ts'
import { loadCatalog, missingPrice } from '../../../src/gateway/catalog/loading/load.ts'
import { sandboxIsWanted, sandboxProvider } from '../../../src/gateway/catalog/loading/sandbox.ts'
import { routeId } from '../../../src/gateway/catalog/model.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const bare = loadConfig({})
const dataFile = (name: string): unknown => JSON.parse(readFileSync(new URL(`../../../catalog/${name}`, import.meta.url), 'utf8'))
const data = {
  providers: providersFile.parse(dataFile('providers.json')).providers,
  models: modelsFile.parse(dataFile('models.json')),
  images: modelsFile.parse(dataFile('images.json')),
}
const allModels = [...data.models.models, ...data.images.models]

function operatorFile(content: unknown): string {
  const path = join(mkdtempSync(join(tmpdir(), 'brigade-catalog-')), 'operator.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const load = (content: unknown, env: Record<string, string> = {}) => loadCatalog({ config: loadConfig(env), operatorFile: operatorFile(content) })

describe('the data files', () => {
  test('every provider and model id occurs once', () => {
    for (const ids of [data.providers.map(entry => entry.id), allModels.map(entry => entry.id)]) expect(ids).toEqual([...new Set(ids)])
  })

  test('every required model is in the catalog', () => {
    const { models } = loadCatalog({ config: bare, operatorFile: null })
    const images =
      'sdxl flux-1-schnell flux-1-dev flux-1-pro cogview-4 qwen-image sd-3.5-large seedream gemini-image minimax-image step-1x grok-2-image gpt-image-1 gpt-image-1-mini dall-e-3'.split(
        ' ',
      )
    const chats =
      'krutrim-2 sarvam-30b qwen2.5-7b-instruct qwen2.5-vl-7b qwen3-32b qwen3.5-9b llama-3.1-8b-instruct llama-3.3-70b kimi-k2 kimi-k3 gpt-oss-20b gpt-oss-120b nemotron-super gemma-4-31b-it glm-4.5-air glm-4.6 glm-4.7 glm-4.7-flash glm-5.2 gpt-5.6-sol claude-fable-5 claude-haiku-4.5'.split(
        ' ',
      )
    const virtual = ['auto', ...'balanced cheapest fastest best agent code reasoning vision long-context sovereign'.split(' ').map(name => `auto:${name}`)]
    for (const id of images) {
      expect(models.get(id)?.kind, id).toBe('image')
      expect(models.get(id)?.inrPerImage, id).toBeGreaterThan(0)
      expect(
        models.get(id)?.routes.every(route => route.byokOnly),
        id,
      ).toBe(true)
    }
    for (const id of chats) expect(models.get(id)?.kind, id).toBe('chat')
    for (const id of virtual) expect(models.get(id)?.kind, id).toBe('virtual')
    expect(models.get('bge-m3')).toMatchObject({ kind: 'embedding', dimensions: 1024 })
    expect(models.get('whisper-large-v3')?.kind).toBe('transcription')
    expect(models.get('kokoro-82m')?.kind).toBe('speech')
    expect(models.get('brigade/image-sangam')?.routes.length).toBeGreaterThan(2)
  })

  test("every claude model runs only on a caller's key", () => {
    const claude = allModels.filter(entry => entry.id.startsWith('claude-'))
    expect(claude.length).toBeGreaterThan(3)
    for (const entry of claude)
      expect(
        entry.routes?.every(route => route.byok_only),
        entry.id,
      ).toBe(true)
  })

  test('every route names a provider of the catalog once per model, and has a positive price, a source and a date', () => {
    const providers = new Set(data.providers.map(entry => entry.id))
    const sources = { ...data.models.sources, ...data.images.sources }
    for (const model of allModels) {
      const names = (model.routes ?? []).map(route => route.provider)
      expect(names, model.id).toEqual([...new Set(names)])
      for (const route of model.routes ?? []) {
        expect(providers.has(route.provider), `${model.id} ${route.provider}`).toBe(true)
        expect(missingPrice(model, route), model.id).toBeNull()
        const prices = [
          route.inr_per_thousand_searches,
          route.input_inr_per_mtok,
          route.output_inr_per_mtok,
          route.inr_per_minute,
          route.inr_per_million_characters,
          model.inr_per_image,
        ]
        // Moderation is free at one vendor.
        for (const price of prices) expect((price ?? 1) > 0 || model.kind === 'moderation', model.id).toBe(true)
        expect(sources[route.source ?? '']?.text, model.id).toMatch(/estimate|₹96 per US dollar/)
      }
    }
  })

  test('only krutrim, sarvam and the self-hosted vLLM are India-resident', () => {
    expect(
      data.providers
        .filter(entry => entry.residency === 'india')
        .map(entry => entry.id)
        .sort(),
    ).toEqual(['krutrim', 'sarvam', 'vllm'])
  })
})

describe('the rankings', () => {
  const { rankings, models } = load({})
  const named = [...Object.values(rankings.capabilities).flat(), ...rankings.toolCalls, ...rankings.tiers.keys()]

  test('the rankings name chat models of the catalog, each once per list', () => {
    expect(named.filter(id => models.get(id)?.kind !== 'chat')).toEqual([])
    for (const list of [...Object.values(rankings.capabilities), rankings.toolCalls]) expect(new Set(list).size).toBe(list.length)
    for (const id of rankings.corruptsToolCalls) expect([...models.values()].some(model => model.routes.some(route => routeId(route) === id))).toBe(true)
  })

  test('the rankings agree with the abilities of the models', () => {
    for (const id of rankings.toolCalls) expect(models.get(id)?.tools, id).toBe(true)
    for (const id of rankings.capabilities['long-context']) expect(models.get(id)?.contextLength, id).toBeGreaterThanOrEqual(100_000)
  })

  test("a ranking in the operator's file replaces that of the catalog", () => {
    const { rankings: own } = load({ rankings: { capabilities: { code: ['krutrim-2'] }, tiers: { best: ['krutrim-2'] } } })
    expect(own.capabilities.code).toEqual(['krutrim-2'])
    expect(own.capabilities.math).toEqual(rankings.capabilities.math)
    expect([own.tiers.get('krutrim-2'), own.tiers.get('gpt-4o')]).toEqual([3, 2])
  })
})

describe('the environment', () => {
  test('a key makes a provider configured, and the environment can set its base URL', () => {
    const { providers } = loadCatalog({ config: loadConfig({ GROQ_API_KEY: 'k', GROQ_BASE_URL: 'http://127.0.0.1:9/v1/' }), operatorFile: null })
    expect(providers.get('groq')).toMatchObject({ configured: true, baseUrl: 'http://127.0.0.1:9/v1' })
    expect(providers.get('openai')).toMatchObject({ configured: false, baseUrl: 'https://api.openai.com/v1' })
  })

  test('vLLM is configured by its base URL alone, and uses a key when there is one', () => {
    const of = (env: Record<string, string>) => loadCatalog({ config: loadConfig(env), operatorFile: null }).providers.get('vllm')
    expect(of({})).toMatchObject({ configured: false, byok: false })
    expect(of({ VLLM_BASE_URL: 'http://10.0.0.5:8000/v1' })).toMatchObject({ configured: true, auth: 'none' })
    expect(of({ VLLM_BASE_URL: 'http://10.0.0.5:8000/v1', VLLM_API_KEY: 'k' })).toMatchObject({ configured: true, auth: 'bearer' })
  })
})

describe("the operator's file", () => {
  test("the operator's file can add a provider and a model", () => {
    const file = {
      providers: [{ id: 'stub', base_url: 'http://127.0.0.1:4000/v1', residency: 'india', api_key_env: 'MY_STUB_KEY' }],
      models: [
        {
          id: 'stub-model',
          context_length: 4096,
          tools: true,
          routes: [{ provider: 'stub', upstream_model: 'up', input_inr_per_mtok: 1.5, output_inr_per_mtok: 3 }],
        },
      ],
    }
    const { providers, models } = load(file, { MY_STUB_KEY: 'secret' })
    expect(providers.get('stub')).toMatchObject({ configured: true, dialect: 'openai', auth: 'bearer', byok: true })
    expect(providers.get('stub')?.platformKey?.reveal()).toBe('secret')
    expect(models.get('stub-model')?.routes[0]).toMatchObject({
      upstreamModel: 'up',
      residency: 'india',
      price: { inputUinrPerMtok: 1_500_000n, outputUinrPerMtok: 3_000_000n },
    })
  })

  test("the operator's file can set name and residency of a local server without its address, whether the server runs or not", () => {
    const file = operatorFile({ providers: [{ id: 'local-ollama', name: 'Rack 4', residency: 'india' }] })
    const here = { provider: { ...sandboxProvider('http://127.0.0.1:11434').provider, id: 'local-ollama' }, models: [] }
    expect(loadCatalog({ config: bare, operatorFile: file, extraProviders: [here] }).providers.get('local-ollama')).toMatchObject({
      name: 'Rack 4',
      residency: 'india',
      baseUrl: 'http://127.0.0.1:11434/v1',
    })
    expect(loadCatalog({ config: bare, operatorFile: file }).providers.has('local-ollama')).toBe(false)
  })

  test("for a known entry, the operator's file changes only the given fields. A list of routes replaces the whole list", () => {
    const { providers, models } = load({
      providers: [{ id: 'openai', base_url: 'http://127.0.0.1:4000/v1' }],
      models: [{ id: 'gpt-4o', tools: false, routes: [{ provider: 'groq', input_inr_per_mtok: 0, output_inr_per_mtok: 0 }] }],
    })
    expect(providers.get('openai')).toMatchObject({ baseUrl: 'http://127.0.0.1:4000/v1', quirks: ['max-completion-tokens'] })
    expect(models.get('gpt-4o')).toMatchObject({ tools: false, contextLength: 128_000 })
    expect(models.get('gpt-4o')?.routes.map(route => route.provider.id)).toEqual(['groq'])
  })

  test.each([
    ['{', 'not valid JSON'],
    [[], 'the file: '],
    [{ provider: [] }, '"provider"'],
    [{ providers: [{ id: 'Bad Id' }] }, 'providers[0].id: expected a provider id'],
    [{ providers: [{ id: 'x', base_url: 'ftp://x' }] }, 'providers[0].base_url: expected an http or https URL'],
    [{ providers: [{ id: 'x' }] }, 'providers[0].base_url: expected the base URL of "x"'],
    [{ providers: [{ id: 'x', base_url: 'http://x', key_shape: '(' }] }, 'providers[0].key_shape: expected a regular expression'],
    [{ models: [{ id: 'm' }] }, 'models[0].routes: expected at least one route'],
    [
      { models: [{ id: 'm', routes: [{ provider: 'nobody', input_inr_per_mtok: 1, output_inr_per_mtok: 1 }] }] },
      'models[0].routes[0].provider: "nobody" is no provider; expected one of vllm,',
    ],
    [
      { models: [{ id: 'm', routes: [{ provider: 'groq', input_inr_per_mtok: '1' }] }] },
      'models[0].routes[0].input_inr_per_mtok: Invalid input: expected number',
    ],
    [{ models: [{ id: 'm', routes: [{ provider: 'groq', input_inr_per_mtok: 1 }] }] }, 'models[0].routes[0].output_inr_per_mtok: expected a price'],
    [{ models: [{ id: 'm', kind: 'image', routes: [{ provider: 'groq' }] }] }, 'models[0].inr_per_image: expected a price'],
  ])('the error message for a mistake in the file names its place: %j', (content, message) => {
    expect(() => load(content)).toThrow(message)
  })

  test('a file that is set explicitly must exist', () => {
    expect(() => loadCatalog({ config: bare, operatorFile: '/nowhere/at/all.json' })).toThrow('/nowhere/at/all.json: cannot be read')
    expect(() => loadCatalog({ config: loadConfig({ CONFIG_FILE: '/nowhere/x.json' }) })).toThrow('cannot be read')
  })

  test('the published JSON schema is the one that the loader checks (UPDATE_DOCS=1 writes it)', () => {
    const path = new URL('../../../docs/reference/brigade.config.schema.json', import.meta.url)
    if (process.env.UPDATE_DOCS) writeFileSync(path, `${JSON.stringify(operatorFileJsonSchema(), null, 2)}\n`)
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(JSON.parse(JSON.stringify(operatorFileJsonSchema())))
  })
})

describe('models without a route', () => {
  test('models without a route are never listed', () => {
    expect(toModel({ id: 'm', routes: [{ provider: 'gone' }] }, new Map(), {})).toBeNull()
    for (const model of loadCatalog({ config: bare, operatorFile: null }).models.values()) expect(model.routes.length, model.id).toBeGreaterThan(0)
  })
})

describe('the sandbox', () => {
  const withSandbox = (env: Record<string, string>) =>
    loadCatalog({ config: loadConfig(env), operatorFile: null, extraProviders: [sandboxProvider('http://127.0.0.1:5001/v1')] })

  test('the sandbox is on while no other provider is configured, unless the setting says otherwise', () => {
    const wanted = (env: Record<string, string>) => sandboxIsWanted(loadConfig(env), withSandbox(env))
    expect(wanted({})).toBe(true)
    expect(wanted({ OPENAI_API_KEY: 'k' })).toBe(false)
    expect(wanted({ OPENAI_API_KEY: 'k', SANDBOX: 'on' })).toBe(true)
    expect(wanted({ SANDBOX: 'off' })).toBe(false)
    // Every claude model needs the caller's credential, so this key alone serves no call of the platform.
    expect(wanted({ ANTHROPIC_API_KEY: 'k' })).toBe(true)
  })

  test('the sandbox accepts its origin as well as its base URL', () => {
    for (const url of ['http://127.0.0.1:5001', 'http://127.0.0.1:5001/', 'http://127.0.0.1:5001/v1', 'http://127.0.0.1:5001/v1/'])
      expect(sandboxProvider(url).provider.baseUrl, url).toBe('http://127.0.0.1:5001/v1')
  })

  test('the sandbox has six models with prices, outside India', () => {
    const { models } = withSandbox({})
    for (const id of ['chat', 'reasoning', 'vision', 'embed', 'image', 'audio']) expect(models.get(`sandbox-${id}`)?.routes[0]?.residency, id).toBe('global')
    expect(models.get('sandbox-chat')?.routes[0]?.price).toMatchObject({ inputUinrPerMtok: 20_000_000n, outputUinrPerMtok: 80_000_000n })
    expect(models.get('sandbox-embed')?.dimensions).toBe(1024)
  })

  test('the sandbox serves presets only while no other provider is configured', () => {
    const providersOf = (env: Record<string, string>) => [
      ...new Set(
        withSandbox(env)
          .models.get('auto')
          ?.routes.map(route => route.provider.id),
      ),
    ]
    expect(providersOf({})).toEqual(['sandbox'])
    expect(providersOf({ GROQ_API_KEY: 'k' })).toEqual(['groq'])
  })
})
