import { describe, expect, test } from 'vitest'
import { Catalog, type RouteState } from '../../../src/gateway/catalog/catalog.ts'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { noRankings } from '../../../src/gateway/catalog/rankings.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const up: RouteState = { available: true, maintenance: false }
const catalogOf = (env: Record<string, string> = {}, healthOf: (id: string) => RouteState = () => up) =>
  new Catalog(loadCatalog({ config: loadConfig(env), operatorFile: null }), healthOf)

describe('the public view of a model', () => {
  test('the public view of a model has prices in rupees, residency, capabilities and routes with their flags', () => {
    const view = catalogOf().publicModel('glm-4.7')
    expect(view).toMatchObject({ id: 'glm-4.7', object: 'model', owned_by: 'zhipu', residency: 'global', tools: true, context_length: 204_800 })
    expect(view?.pricing).toEqual({ inputINRPerMtok: 38, outputINRPerMtok: 168 })
    expect(view?.modalities).toEqual(['text', 'reasoning'])
    expect(view?.supported_parameters).toContain('reasoning')
    expect(view?.routes[0]).toEqual({
      provider: 'zhipu',
      residency: 'global',
      inputINRPerMtok: 58,
      outputINRPerMtok: 211,
      available: true,
      maintenance: false,
      byok_only: false,
      configured: false,
      context_length: 204_800,
    })
    expect(view?.routes.find(route => route.provider === 'openrouter')?.byok_only).toBe(true)
  })

  test('the public view shows the current flags of each route separately', () => {
    const view = catalogOf({}, id => (id === 'zhipu/glm-4.7' ? { available: false, maintenance: true } : up)).publicModel('glm-4.7')
    expect(view?.routes.map(route => [route.provider, route.available, route.maintenance])).toEqual([
      ['zhipu', false, true],
      ['baseten', true, false],
      ['openrouter', true, false],
    ])
  })

  test('a model counts as India-resident when at least one of its routes is', () => {
    expect(catalogOf().publicModel('bge-m3')).toMatchObject({ residency: 'india', dimensions: 1024 })
    expect(catalogOf().publicModel('llama-3.1-8b-instruct')?.residency).toBe('india')
    expect(catalogOf().publicModel('gpt-4o')?.residency).toBe('global')
  })

  test('the public view shows image prices per image, and audio prices per unit of audio', () => {
    expect(catalogOf().publicModel('sdxl')?.inrPerImage).toBe(0.3)
    expect(catalogOf().publicModel('whisper-large-v3')?.pricing).toEqual({ inputINRPerMtok: 0, outputINRPerMtok: 0, inrPerMinute: 0.3 })
    expect(catalogOf().publicModel('kokoro-82m')?.pricing['inrPerMillionCharacters']).toBe(60)
  })

  test('the public view of a virtual id names the concrete models of its routes', () => {
    const view = catalogOf({ GROQ_API_KEY: 'k' }).publicModel('auto:reasoning')
    expect(view?.kind).toBe('virtual')
    expect(view?.routes.map(route => `${route.provider}/${route.model}`)).toEqual(['groq/qwen3-32b', 'groq/gpt-oss-20b', 'groq/gpt-oss-120b'])
  })

  test('the public view of an unknown id is null', () => {
    expect(catalogOf().publicModel('nope')).toBeNull()
  })
})

test('the modality filter requires all named modalities', () => {
  const ids = (...modalities: string[]): string[] =>
    catalogOf()
      .publicModels(modalities)
      .map(view => view.id)
  expect(ids()).toContain('bge-m3')
  expect(ids('image', 'reasoning')).toContain('grok-4')
  expect(ids('image', 'reasoning')).not.toContain('gpt-4o')
  expect(ids('embedding')).toEqual(['bge-m3', 'text-embedding-3-small', 'text-embedding-3-large'])
  expect(ids('smell')).toEqual([])
})

test('every model of the public list is found by its id', () => {
  const catalog = catalogOf()
  for (const view of catalog.publicModels()) expect(catalog.publicModel(view.id)).toEqual(view)
})

test('providers show whether they are configured, their residency, and whether a platform key or an own key serves', () => {
  const find = (id: string, env: Record<string, string> = {}) =>
    catalogOf(env)
      .publicProviders()
      .find(view => view.id === id)
  expect(find('krutrim')).toMatchObject({ configured: false, residency: 'india', byok: true, platform_fallback: false })
  expect(find('groq', { GROQ_API_KEY: 'k' })).toMatchObject({ configured: true, residency: 'global', byok: true, platform_fallback: true })
  expect(find('anthropic', { ANTHROPIC_API_KEY: 'k' })).toMatchObject({ configured: true, byok: true, platform_fallback: false })
})

test('a reload replaces the catalog that is served', () => {
  const catalog = catalogOf()
  catalog.replace({ providers: new Map(), models: new Map(), rankings: noRankings })
  expect(catalog.publicModels()).toEqual([])
})
