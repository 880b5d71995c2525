/** Random catalogs, organisations and requests, and facts about them that a test can state without the router. */
import fc from 'fast-check'
import type { RecordedRequest, UpstreamScript } from '../../harness/upstream-server.ts'

/** Four providers on one server. The credential of a request tells them apart. The platform has no key for the last one. */
export const providerIds = ['pa', 'pb', 'pc', 'pd'] as const
export type ProviderId = (typeof providerIds)[number]
const chatIds = ['c1', 'c2', 'c3', 'c4', 'c5'] as const
const otherIds = ['vectors', 'picture', 'voice'] as const
const virtualIds = ['auto', 'best', 'cheapest', 'fastest', 'agent', 'code', 'reasoning', 'vision', 'long-context', 'sovereign'].map(name =>
  name === 'auto' || name === 'best' ? name : `auto:${name}`,
)

export const env = Object.fromEntries(['PA', 'PB', 'PC'].map(name => [`${name}_API_KEY`, `${name.toLowerCase()}-platform-secret`]))
export const savedKeyOf = (id: ProviderId): string => `sk-saved-of-${id}-0001`
export const requestKey = 'sk-of-the-caller-0001'
const listed = 'listed-model'

const bool = (share = 2): fc.Arbitrary<boolean> => fc.nat(share - 1).map(drawn => drawn === 0)
const residency = fc.constantFrom('india' as const, 'global' as const, 'unknown' as const)
const route = fc.record({
  inr: fc.integer({ min: 1, max: 6 }),
  rank: fc.option(fc.integer({ min: 1, max: 3 })),
  window: fc.option(fc.constantFrom(50, 9000)),
  byokOnly: bool(5),
})
const routes = fc.tuple(fc.shuffledSubarray([...providerIds], { minLength: 1 }), fc.array(route, { minLength: 4, maxLength: 4 }))
const chatModel = fc.record({ routes, tools: bool(), vision: bool(), reasoning: bool(), gated: bool(5) })
const step = fc.oneof(
  fc.constantFrom<string>(...chatIds, 'auto:cheapest', 'auto:sovereign', 'best', 'nowhere', `pa/${listed}`, 'vectors'),
  fc.record({ model: fc.constantFrom<string>(...chatIds, 'auto:code'), provider: fc.constantFrom(...providerIds) }, { noNullPrototype: true }),
)
const order = fc.shuffledSubarray([...chatIds])

/** A random catalog with the rules of an organisation. */
export const worlds = fc.record({
  residencies: fc.tuple(residency, residency, residency, residency),
  chats: fc.array(chatModel, { minLength: chatIds.length, maxLength: chatIds.length }),
  others: fc.array(routes, { minLength: otherIds.length, maxLength: otherIds.length }),
  general: order,
  code: order,
  toolCalls: order,
  tiers: order,
  saved: fc.array(fc.record({ id: fc.constantFrom(...providerIds), alwaysUse: bool() }), { maxLength: 3 }),
  chains: fc.array(fc.record({ model: fc.constantFrom(...chatIds, 'vectors'), steps: fc.array(step, { minLength: 1, maxLength: 4 }) }), { maxLength: 2 }),
  retention: bool(),
  allowedModels: fc.option(fc.subarray([...chatIds, ...otherIds, 'auto', 'auto:cheapest'], { minLength: 4 }), { freq: 1 }),
  allowedProviders: fc.option(fc.subarray([...providerIds], { minLength: 2 }), { freq: 1 }),
})
export type World = typeof worlds extends fc.Arbitrary<infer T> ? T : never

/** Returns the operator's file of a random catalog. All providers are at `url`. */
export function fileOf(world: World, url: string): object {
  const routesOf = ([ids, drawn]: World['others'][number], price: (inr: number) => object) =>
    ids.map((id, index) => {
      const { inr = 1, rank = null, window = null, byokOnly = false } = drawn[index] ?? {}
      const more = { ...(rank === null ? {} : { rank }), ...(window === null ? {} : { context_length: window }), ...(byokOnly ? { byok_only: true } : {}) }
      return { provider: id, ...price(inr), ...more, source: 'test', as_of: '2026-01-01' }
    })
  const tokens = (inr: number) => ({ input_inr_per_mtok: inr, output_inr_per_mtok: inr })
  const [vectors, picture, voice] = world.others
  if (!vectors || !picture || !voice) throw new Error('three other models are drawn')
  return {
    providers: providerIds.map((id, index) => ({ id, base_url: url, auth: 'bearer', residency: world.residencies[index] })),
    models: [
      ...world.chats.map(({ routes: drawn, tools, vision, reasoning, gated }, index) => ({
        id: chatIds[index],
        kind: 'chat',
        context_length: 8000,
        tools,
        reasoning,
        gated,
        modalities: vision ? ['text', 'image'] : ['text'],
        routes: routesOf(drawn, tokens),
      })),
      { id: 'vectors', kind: 'embedding', context_length: 8000, dimensions: 8, routes: routesOf(vectors, tokens) },
      { id: 'picture', kind: 'image', inr_per_image: 1, routes: routesOf(picture, () => ({})) },
      { id: 'voice', kind: 'speech', routes: routesOf(voice, inr => ({ inr_per_million_characters: inr })) },
    ],
    rankings: {
      capabilities: { general: world.general, code: world.code, math: world.code, multilingual: world.general, reasoning: world.code },
      tool_calls: world.toolCalls,
      tiers: { good: world.tiers.slice(0, 2), best: world.tiers.slice(2, 3) },
    },
  }
}

const texts = ['Hello', 'Fix app.ts:\n```ts\nlet x = 1\n```', 'What is the integral of sin(x) dx?', 'नमस्ते दुनिया', 'word '.repeat(80), ''] as const
const now = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })
/** JSON leaves out undefined fields. */
const fields = fc.record({
  optimize: now(fc.constantFrom('price', 'latency', 'uptime', 'throughput', 'quality', 'auto', 'cheap')),
  optimize_weights: now(fc.record({ price: fc.nat(3), latency: fc.nat(3), uptime: fc.nat(3) }, { noNullPrototype: true })),
  route: now(fc.constant('best')),
  provider: now(fc.constantFrom(...providerIds, 'nobody')),
  data_policy: now(fc.constant('india_only')),
  exclude: now(fc.subarray(['pa', 'pb', 'pc/c1', 'pc/c2', 'pd'], { minLength: 1 })),
  upstream_key: now(fc.constant(requestKey)),
  fallbacks: now(fc.array(step, { maxLength: 3 })),
})

const models = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom<string>(...chatIds) },
  { weight: 3, arbitrary: fc.constantFrom(...virtualIds) },
  { weight: 1, arbitrary: fc.constantFrom(...otherIds, 'nobody', `pa/${listed}`, 'pb/unlisted', 'auto:none') },
)
const picture = 'data:image/png;base64,iVBORw0KGgo='

/** A call of any API, as path and body. */
export const calls = fc
  .record({
    api: fc.constantFrom(
      'chat' as const,
      'chat' as const,
      'messages' as const,
      'responses' as const,
      'embeddings' as const,
      'images' as const,
      'speech' as const,
    ),
    model: models,
    fields,
    text: fc.constantFrom(...texts),
    tools: bool(4),
    image: bool(4),
    isDown: bool(),
  })
  .map(({ api, model, fields: given, text, tools, image, isDown }) => {
    // With a caller's key, a preset may pick a real provider of the built-in catalog. No test may dial such a provider.
    const { upstream_key, ...rest } = given
    const isPicked = model.startsWith('auto') || model === 'best' || rest.route !== undefined || rest.fallbacks !== undefined
    const key = isPicked ? {} : { upstream_key }
    // Usually the model fits the API, and calls of these APIs have no chain.
    const isOwn = ['embeddings', 'images', 'speech'].includes(api) && !tools
    if (isOwn) rest.fallbacks = undefined
    return { isDown, given: rest, path: paths[api], body: { model, ...rest, ...key, ...bodyOf(api, text, tools, image, isOwn ? 'own' : model) } }
  })
export type DrawnCall = typeof calls extends fc.Arbitrary<infer T> ? T : never

const paths = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  embeddings: '/v1/embeddings',
  images: '/v1/images/generations',
  speech: '/v1/audio/speech',
} as const

/** The preview recognises an API by the fields of the body, so every body has the fields of its API. */
function bodyOf(api: keyof typeof paths, text: string, tools: boolean, image: boolean, model: string): object {
  const fn = { name: 'look', parameters: { type: 'object' } }
  switch (api) {
    case 'chat': {
      const content = image
        ? [
            { type: 'text', text },
            { type: 'image_url', image_url: { url: picture } },
          ]
        : text
      return { messages: [{ role: 'user', content }], ...(tools ? { tools: [{ type: 'function', function: fn }] } : {}) }
    }
    case 'messages': {
      const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
      const content = image ? [...(text === '' ? [] : [{ type: 'text', text }]), block] : `${text}.`
      return {
        max_tokens: 20,
        system: 'Be short.',
        messages: [{ role: 'user', content }],
        ...(tools ? { tools: [{ name: 'look', input_schema: { type: 'object' } }] } : {}),
      }
    }
    case 'responses': {
      const content = [{ type: 'input_text', text }, ...(image ? [{ type: 'input_image', image_url: picture }] : [])]
      // Other kinds of models have an `input` too. The preview would take this body for a call of such a model, so the model is replaced.
      return {
        input: [{ role: 'user', content }],
        ...(tools ? { tools: [{ type: 'function', ...fn }] } : {}),
        ...(otherIds.some(id => id === model) ? { model: 'c1' } : {}),
      }
    }
    case 'embeddings':
      return { input: ['a'], model: 'vectors' }
    case 'images':
      return { prompt: 'a tree', ...(['own', 'voice', 'vectors'].includes(model) || model.startsWith('c') ? { model: 'picture' } : {}) }
    case 'speech':
      return { input: 'Hello', voice: 'alloy', ...(['own', 'vectors', 'picture'].includes(model) ? { model: 'voice' } : {}) }
  }
}

/** Returns what the server of all providers answers. */
export function answer(request: RecordedRequest, isDown: boolean): UpstreamScript {
  if (isDown) return { status: 503 }
  if (request.path.endsWith('/models')) return { body: { object: 'list', data: [{ id: listed }] } }
  if (request.path.endsWith('/images/generations')) return { body: { created: 1, data: [{ b64_json: 'aGk=' }] } }
  if (request.path.endsWith('/audio/speech')) return { body: 'sound', headers: { 'content-type': 'audio/mpeg' } }
  return {}
}

/** Returns the provider whose credential a request contains. */
export function providerOf({ headers }: RecordedRequest, called: string | undefined): ProviderId | null {
  const credential = headers.authorization?.slice('Bearer '.length) ?? ''
  if (credential === requestKey) return providerIds.find(id => id === called) ?? null
  return providerIds.find(id => credential === savedKeyOf(id) || credential === `${id}-platform-secret`) ?? null
}
