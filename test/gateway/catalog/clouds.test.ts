import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { loadConfig } from '../../../src/platform/config.ts'

const price = { input_inr_per_mtok: 1, output_inr_per_mtok: 1 }
const providers = [
  { id: 'mumbai', base_url: 'https://bedrock-runtime.ap-south-1.amazonaws.com', cloud: 'bedrock-invoke', residency: 'india' },
  { id: 'world', base_url: 'https://aiplatform.googleapis.com/v1/projects/p/locations/global', cloud: 'vertex', residency: 'india' },
]

function loadFile(text: string, env: Record<string, string> = {}) {
  const path = join(mkdtempSync(join(tmpdir(), 'brigade-clouds-')), 'operator.json')
  writeFileSync(path, text)
  return loadCatalog({ config: loadConfig(env), operatorFile: path })
}
const load = (model: object) => loadFile(JSON.stringify({ providers, models: [{ id: 'm', ...model }] }))
const routed =
  (route: object, model: object = {}) =>
  () =>
    load({ ...model, routes: [{ provider: 'mumbai', ...price, ...route }] })

test('CLOUD-06 a route of several regions in a provider of India is global, and a row that states otherwise does not load', () => {
  const local = 'anthropic.claude-3-haiku-20240307-v1:0'
  const residencyOf = (route: object) => routed(route)().models.get('m')?.routes[0]?.residency
  expect([residencyOf({ upstream_model: local }), residencyOf({ upstream_model: `global.${local}` })]).toEqual(['india', 'global'])
  expect(residencyOf({ provider: 'world', dialect: 'gemini', upstream_model: 'gemini-2.5-pro' })).toBe('global')
  expect(routed({ upstream_model: `global.${local}`, residency: 'india' })).toThrow(
    `models[0].routes[0].residency: the route names "global.${local}", which other regions may serve, so it cannot be "india"`,
  )
  expect(routed({ provider: 'world', residency: 'india' })).toThrow('the route calls global, which is not in India')
})

test('a cloud serves only its dialects and chat models', () => {
  expect(routed({ dialect: 'gemini' })).toThrow('models[0].routes[0].dialect: "mumbai" serves the dialects anthropic in the cloud bedrock-invoke, not gemini')
  expect(routed({ provider: 'world', dialect: 'openai' })).toThrow('serves the dialects anthropic and gemini in the cloud vertex, not openai')
  expect(routed({}, { kind: 'image', inr_per_image: 1 })).toThrow('"mumbai" serves chat models in the cloud bedrock-invoke, no model of kind image')
  expect(routed({})().providers.get('mumbai')?.dialect).toBe('anthropic')
})

test('the example of the guide loads with its settings, and the rows of the catalog say that nobody has tried them', () => {
  const page = readFileSync(new URL('../../../docs/guides/cloud-models.md', import.meta.url), 'utf8')
  const env = {
    BEDROCK_CLAUDE_REGION: 'ap-south-1',
    BEDROCK_CLAUDE_API_KEY: 'bedrock-api-key',
    VERTEX_PROJECT: 'acme',
    VERTEX_LOCATION: 'global',
    VERTEX_IDENTITY: 'on',
  }
  const { models, providers: loaded } = loadFile(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '', env)
  const [bedrock, vertex] = ['bedrock-claude', 'vertex'].map(id => loaded.get(id))
  expect([bedrock?.baseUrl, vertex?.baseUrl]).toEqual([
    'https://bedrock-runtime.ap-south-1.amazonaws.com',
    'https://aiplatform.googleapis.com/v1/projects/acme/locations/global',
  ])
  expect([bedrock, vertex].map(row => [row?.configured, row?.untried])).toEqual([
    [true, true],
    [true, true],
  ])
  expect(models.get('claude-in-cloud')?.routes.map(({ dialect, residency }) => [dialect, residency])).toEqual([
    ['anthropic', 'global'],
    ['anthropic', 'global'],
  ])
  expect(models.get('gemini-in-cloud')?.routes[0]?.dialect).toBe('gemini')
})
