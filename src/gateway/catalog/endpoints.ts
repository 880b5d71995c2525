import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { allowanceOfCaller } from './allowance.ts'
import type { Catalog } from './catalog.ts'
import type { Model } from './model.ts'

/** The models that the caller's organisation can use and that are not in the catalog. They were found with its saved keys. */
export interface OwnModels {
  of(caller: Principal | null): readonly Model[] | Promise<readonly Model[]>
}

const row = endpointOf<{ catalog: Catalog; ownModels: OwnModels }>()

const routeView = z.object({
  provider: z.string(),
  model: z.string().optional().describe('Only on virtual models: the concrete model of the route.'),
  residency: z.enum(['india', 'global']),
  inputINRPerMtok: z.number(),
  outputINRPerMtok: z.number(),
  available: z.boolean().describe('False while the circuit of the route is open.'),
  maintenance: z.boolean().describe("True while the platform's route is withheld; a caller's own key is still served."),
  byok_only: z.boolean().describe("Never served on the platform's key."),
  configured: z.boolean().describe('Whether calls are served now. False: only with a key that you send or save.'),
  context_length: z.int().nullable(),
})

const modelView = z.object({
  id: z.string(),
  object: z.literal('model'),
  owned_by: z.string(),
  kind: z.enum(['chat', 'embedding', 'image', 'transcription', 'speech', 'virtual']),
  pricing: z
    .object({
      inputINRPerMtok: z.number(),
      outputINRPerMtok: z.number(),
      cachedInputINRPerMtok: z.number().optional().describe('Input that the provider reads from its cache. Absent: as input.'),
      cacheWriteINRPerMtok: z.number().optional().describe('Input that the provider writes to its cache. Absent: as input.'),
      audioInputINRPerMtok: z.number().optional().describe('Input that is sound. Absent: sound is taken on own provider keys only.'),
      inrPerMinute: z.number().optional(),
      inrPerMillionCharacters: z.number().optional(),
    })
    .describe('₹ per million tokens on the cheapest route; audio has its own unit.'),
  residency: z.enum(['india', 'global']).describe('india: at least one route is India-resident.'),
  languages: z.array(z.string()),
  context_length: z.int().nullable(),
  max_output_tokens: z.int().nullable(),
  tools: z.boolean(),
  modalities: z.array(z.string()),
  supported_parameters: z.array(z.string()),
  reasoning_efforts: z
    .array(z.string())
    .optional()
    .describe('Values of reasoning_effort that the model takes, from the least to the most; others go to the nearest.'),
  openness: z.enum(['open', 'permissive', 'closed']).optional(),
  inrPerImage: z.number().optional(),
  dimensions: z.int().optional(),
  routes: z.array(routeView),
})

const providerView = z.object({
  id: z.string(),
  name: z.string(),
  configured: z.boolean(),
  residency: z.enum(['india', 'global']),
  byok: z.boolean().describe('Callers may bring their own key.'),
  platform_fallback: z.boolean().describe("Serves on the platform's key when the caller has none."),
  missing: z.array(z.string()).optional().describe('Settings of the operator without which a cloud is not configured. Absent: none.'),
  untried: z.literal(true).optional().describe('Brigade was never tried against the real service of this provider.'),
})

const listModels = row({
  at: 'GET /v1/models',
  auth: 'public',
  access: {},
  tag: 'catalog',
  summary: 'Models with prices, residency, capabilities and routes. With a credential: those that it may use, and those on own keys as provider/model-id.',
  input: {
    query: z.object({
      modality: z.string().max(256).optional().describe('Comma list; a model must have all of them. Example: text,reasoning.'),
      client_version: z.string().optional().describe('Codex says its version here.'),
    }),
  },
  output: z.object({
    object: z.literal('list'),
    data: z.array(modelView),
    models: z.array(z.never()).optional().describe('Only for Codex, which looks for entries of its own form and uses its defaults without them.'),
  }),
  errors: [],
  async handle({ catalog, ownModels }, { query }, call) {
    const own = await ownModels.of(call.principal)
    const data = catalog.publicModels(words(query.modality), allowanceOfCaller(call.principal), own)
    // Codex requires this field. Without it, Codex reports the whole list as an error at every start.
    return { object: 'list', data, ...(query.client_version === undefined ? {} : { models: [] }) }
  },
})

const getModel = row({
  at: 'GET /v1/models/{id+}',
  auth: 'public',
  access: {},
  tag: 'catalog',
  summary: 'One model.',
  input: { path: z.object({ id: z.string().max(256) }) },
  output: modelView,
  errors: ['model_not_found'],
  async handle({ catalog, ownModels }, { path }, call) {
    const allowance = allowanceOfCaller(call.principal)
    const model = catalog.publicModel(path.id, allowance) ?? catalog.publicModel(path.id, allowance, await ownModels.of(call.principal))
    if (!model) throw fail('model_not_found')
    return model
  },
})

const listProviders = row({
  at: 'GET /v1/providers',
  auth: 'public',
  access: {},
  tag: 'catalog',
  summary: 'Providers: whether they are configured, where they are, whether callers may bring a key.',
  input: {},
  output: z.object({ object: z.literal('list'), data: z.array(providerView) }),
  errors: [],
  handle: ({ catalog }, _input, call) => ({ object: 'list', data: catalog.publicProviders(allowanceOfCaller(call.principal)) }),
})

export const catalogEndpoints = { listModels, getModel, listProviders }

const words = (list: string | undefined): string[] =>
  (list ?? '')
    .split(',')
    .map(word => word.trim())
    .filter(word => word !== '')
