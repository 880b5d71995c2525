/** The list of models as clients of Google's API read it. */
import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { allowanceOfCaller } from './allowance.ts'
import type { Catalog, ModelView } from './catalog.ts'
import type { Model } from './model.ts'

/** The models that are found with the saved keys of the caller's organisation. */
export interface OwnModels {
  of(caller: Principal | null): readonly Model[] | Promise<readonly Model[]>
}

const row = endpointOf<{ catalog: Catalog; ownModels: OwnModels }>()

/** Google's own limit of a page. */
const pageMax = 1000

const modelView = z.object({
  name: z.string().describe('models/ and the catalog id.'),
  baseModelId: z.string(),
  version: z.string(),
  displayName: z.string(),
  description: z.string(),
  inputTokenLimit: z.int().optional(),
  outputTokenLimit: z.int().optional(),
  supportedGenerationMethods: z.array(z.string()),
  thinking: z.boolean().optional(),
})

const methods: Readonly<Partial<Record<ModelView['kind'], readonly string[]>>> = {
  chat: ['generateContent', 'streamGenerateContent', 'countTokens'],
  virtual: ['generateContent', 'streamGenerateContent', 'countTokens'],
  embedding: ['embedContent', 'batchEmbedContents'],
}

/** Returns a model as Google's API shows it. Models of pictures and sound have no method of that API here, so they are not shown. */
function viewOf(model: ModelView): z.output<typeof modelView>[] {
  const supported = methods[model.kind]
  if (supported === undefined) return []
  const { context_length: window, max_output_tokens: most } = model
  return [
    {
      name: `models/${model.id}`,
      baseModelId: model.id,
      version: '001',
      displayName: model.id,
      description: `${model.id} by ${model.owned_by}`,
      ...(window === null ? {} : { inputTokenLimit: window }),
      ...(most === null ? {} : { outputTokenLimit: most }),
      supportedGenerationMethods: [...supported],
      ...(model.supported_parameters.includes('reasoning_effort') ? { thinking: true } : {}),
    },
  ]
}

const key = z.string().optional().describe('The gateway key, for clients that cannot send a header.')

const listGeminiModels = row({
  at: 'GET /v1beta/models',
  auth: 'public',
  access: {},
  tag: 'catalog',
  summary: "Models of text and embeddings in Google's format. With a credential: those that it may use.",
  input: {
    query: z.object({
      pageSize: z
        .string()
        .regex(/^\d{1,6}$/)
        .optional()
        .describe(`At most ${pageMax}, which is the default.`),
      pageToken: z
        .string()
        .regex(/^\d{1,6}$/)
        .optional()
        .describe('nextPageToken of the page before.'),
      key,
    }),
  },
  output: z.object({ models: z.array(modelView), nextPageToken: z.string().optional() }),
  errors: ['bad_request'],
  clients: 'gemini',
  async handle({ catalog, ownModels }, { query }, call) {
    const own = await ownModels.of(call.principal)
    const all = catalog.publicModels([], allowanceOfCaller(call.principal), own).flatMap(viewOf)
    const from = Number(query.pageToken ?? 0)
    const size = Math.min(pageMax, Number(query.pageSize ?? 0) || pageMax)
    return { models: all.slice(from, from + size), ...(from + size < all.length ? { nextPageToken: String(from + size) } : {}) }
  },
})

const getGeminiModel = row({
  at: 'GET /v1beta/models/{model+}',
  auth: 'public',
  access: {},
  tag: 'catalog',
  summary: "One model in Google's format.",
  input: { path: z.object({ model: z.string().max(256) }), query: z.object({ key }) },
  output: modelView,
  errors: ['model_not_found'],
  clients: 'gemini',
  async handle({ catalog, ownModels }, { path }, call) {
    const allowance = allowanceOfCaller(call.principal)
    const model = catalog.publicModel(path.model, allowance) ?? catalog.publicModel(path.model, allowance, await ownModels.of(call.principal))
    const [view] = model === null ? [] : viewOf(model)
    if (view === undefined) throw fail('model_not_found')
    return view
  },
})

export const geminiModelEndpoints = { listGeminiModels, getGeminiModel }
