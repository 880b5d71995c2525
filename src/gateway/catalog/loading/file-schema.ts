import { z } from 'zod'
import { isAddress, placeNames } from '../../cloud/address-template.ts'
import { imageStyleIds } from '../../providers/image-style-ids.ts'
import { cloudIds, type PlaceName, rerankStyleIds } from '../../providers/provider.ts'
import { rankingsOverride } from '../rankings.ts'

/**
 * The shapes of catalog/*.json and of the operator's file. Both use the same entries. Every field except the id may be omitted, and gets a default.
 * An operator's entry with a known id overrides the catalog's entry field by field. A `routes` list replaces the catalog's list completely.
 */

const id = z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,127}$/, 'expected an id: letters, digits and . _ : / -, at most 128')
const providerId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected a provider id: lower-case letters, digits and . _ -, at most 64')
const inr = z.number().min(0).max(1e9)
const tokens = z.int().min(1).max(1e9)
const residency = z.enum(['india', 'global', 'unknown'])
const cacheTtl = z
  .int()
  .min(1)
  .max(86_400 * 7)
const words = z.array(z.string().min(1).max(64)).max(64)

function isRegularExpression(source: string): boolean {
  try {
    return new RegExp(source) instanceof RegExp
  } catch {
    return false
  }
}

const relativePath = z.string().regex(/^(\.\.\/)*[a-zA-Z0-9][\w./-]{0,199}$/, 'expected a path relative to base_url, without a slash in front')

/** An address, with or without placeholders. */
const address = z
  .string()
  .max(500)
  .refine(isAddress, 'expected an http or https URL. Placeholders fill one label of the host before its last two, or one segment of the path')
const placeEntry = z.strictObject(
  Object.fromEntries(placeNames.map(name => [name, z.string().min(1).max(128).optional()])) as Record<PlaceName, z.ZodOptional<z.ZodString>>,
)

/** One provider. */
export const providerEntry = z.strictObject({
  id: providerId.describe('Names the provider in requests, headers and environment variables.'),
  name: z.string().min(1).max(128).optional().describe('For people. Default: the id.'),
  dialect: z.enum(['openai', 'openai-responses', 'anthropic', 'gemini']).optional().describe('Wire format of the upstream. Default: openai.'),
  cloud: z
    .enum(cloudIds)
    .optional()
    .describe(
      'The cloud whose own paths replace those of the dialect. bedrock-invoke: InvokeModel of AWS Bedrock, for the dialect anthropic. vertex: Vertex AI of Google, for the dialects anthropic and gemini; base_url then ends in /projects/PROJECT/locations/LOCATION. Default: none.',
    ),
  base_url: address
    .nullable()
    .optional()
    .describe(
      'Up to and including the version segment. {resource}, {region}, {project} and {location} are filled with values. <PROVIDER>_BASE_URL in the environment wins; null asks for that variable.',
    ),
  base_url_cases: z
    .array(z.strictObject({ when: placeEntry, base_url: address }))
    .max(20)
    .optional()
    .describe('Other addresses for certain values. The first one that applies is used.'),
  values: placeEntry.optional().describe('Values of the placeholders of base_url. <PROVIDER>_RESOURCE and the like in the environment win.'),
  auth: z
    .enum(['bearer', 'x-api-key', 'api-key', 'x-key', 'x-goog-api-key', 'identity', 'none'])
    .optional()
    .describe('How the key is sent. identity: the provider takes no key. Default: bearer.'),
  identity: z
    .discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('aws'),
        service: z
          .string()
          .regex(/^[a-z0-9-]{1,64}$/)
          .describe('Service name in signatures.'),
      }),
      z.strictObject({ kind: z.literal('google') }),
      z.strictObject({
        kind: z.literal('entra'),
        scope: z.string().regex(/^https:\/\/[\w./-]{1,200}\/\.default$/, 'expected a scope such as https://ai.azure.com/.default'),
      }),
    ])
    .optional()
    .describe('The credentials that expire which it takes: signatures of AWS, tokens of Google, tokens of Entra.'),
  use_identity: z
    .boolean()
    .optional()
    .describe('True: where no key is set, the identity of this process serves calls. <PROVIDER>_IDENTITY in the environment wins. Default: false.'),
  untried: z.literal(true).optional().describe('Nobody has tried this row against the real service. brigade doctor --probe tries it.'),
  key_optional: z.boolean().optional().describe('True: without a key the provider is dialed without one.'),
  residency: residency.optional().describe('Where data is kept and processed. Default: unknown, which never counts as India.'),
  byok: z.boolean().optional().describe('Callers may bring their own key. Default: true. A provider that is called without a key takes none.'),
  key_shape: z
    .string()
    .refine(isRegularExpression, 'expected a regular expression')
    .nullable()
    .optional()
    .describe('Regular expression of every key that this provider has issued: another one is not saved. Leave it out when in doubt.'),
  key_sign: z
    .string()
    .refine(isRegularExpression, 'expected a regular expression')
    .optional()
    .describe('Regular expression of keys that can be of this provider only: it decides whose an upstream_key is. Default: key_shape.'),
  models_path: relativePath.nullable().optional().describe('Where the list of models is, relative to base_url. Default: models; null: there is none.'),
  key_check_path: relativePath
    .optional()
    .describe('A GET, relative to base_url, that only a valid key may make. For providers whose list of models needs no key.'),
  image_style: z.enum(imageStyleIds).optional().describe('How its images are asked for. Default: openai.'),
  rerank_style: z
    .enum(rerankStyleIds)
    .optional()
    .describe('How it ranks documents. jina is also the form of vLLM and llama.cpp, tei that of Text Embeddings Inference. Default: cohere.'),
  rerank_path: relativePath.optional().describe('Where it ranks documents, relative to base_url. Default: rerank.'),
  forwards: z
    .literal('all')
    .optional()
    .describe(
      "all: every field of a request goes on to it on the platform's key. For your own servers, where no field costs anything. Default: those of the format.",
    ),
  fields: z
    .array(z.string().regex(/^[A-Za-z_][\w.-]{0,99}$/, 'expected the name of a field'))
    .max(100)
    .optional()
    .describe("Fields beside those of the format that go on to it on the platform's key, such as top_n, or anthropic-beta.NAME for a beta."),
  files: z
    .enum(['file-parser', 'unpriced'])
    .optional()
    .describe(
      "What reading a file costs beside its tokens on the platform's key. file-parser: its plugin of that name is told to use an engine without a fee. unpriced: the price is not known, so a file needs a model with the modality file, or an own key. Default: nothing.",
    ),
  quirks: z
    .array(z.enum(['no-stream-usage', 'system-as-user', 'max-completion-tokens', 'cache-control', 'echo-reasoning', 'limit-excludes-thinking']))
    .optional()
    .describe('Small deviations from the dialect.'),
  batches: z.boolean().optional().describe('It takes batches of requests in the format of its dialect, openai, openai-responses or anthropic. Default: false.'),
  cache_ttl_seconds: cacheTtl
    .optional()
    .describe('How long it keeps the beginning of a prompt in its cache. A conversation stays on its route for that time after each call. Default: 300.'),
  api_key_env: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]*$/, 'expected the name of an environment variable')
    .optional()
    .describe('Environment variable of the key. Default: <PROVIDER>_API_KEY.'),
})

/** The prices of tokens, of a route or of one of its tiers. */
const tokenPrices = {
  input_inr_per_mtok: inr.optional().describe('₹ per million input tokens.'),
  output_inr_per_mtok: inr.optional().describe('₹ per million output tokens.'),
  cached_input_inr_per_mtok: inr.optional().describe('₹ per million cached input tokens. Default: as input.'),
  cache_write_inr_per_mtok: inr.optional().describe('₹ per million input tokens that are written to the cache. Default: as input.'),
  cache_write_hour_inr_per_mtok: inr
    .optional()
    .describe('₹ per million input tokens that are written to the cache for an hour. Default: twice the input price where cache_write_inr_per_mtok is given.'),
  audio_input_inr_per_mtok: inr.optional().describe('₹ per million input tokens that are sound. Absent: a prompt with sound is not taken on the platform key.'),
  batch_input_inr_per_mtok: inr.optional().describe('₹ per million input tokens of a batch. Default: half of the input price.'),
  batch_output_inr_per_mtok: inr.optional().describe('₹ per million output tokens of a batch. Default: half of the output price.'),
}

const priceTier = z.strictObject({
  ...tokenPrices,
  above_prompt_tokens: tokens.describe('The prices apply to calls whose prompt has more tokens than this, cached ones included.'),
  input_inr_per_mtok: inr.describe('₹ per million input tokens.'),
  output_inr_per_mtok: inr.describe('₹ per million output tokens.'),
})

const isRising = (tiers: readonly { readonly above_prompt_tokens: number }[]): boolean =>
  tiers.every((tier, index) => tier.above_prompt_tokens > (tiers[index - 1]?.above_prompt_tokens ?? 0))

/** One provider that serves a model. */
export const routeEntry = z.strictObject({
  provider: providerId.describe('Id of a provider of the catalog or of this file.'),
  upstream_model: z.string().min(1).max(256).optional().describe('The id that the provider knows. Default: the model id.'),
  ...tokenPrices,
  tiers: z
    .array(priceTier)
    .max(8)
    .refine(isRising, 'expected a higher above_prompt_tokens in each tier than in the one before')
    .optional()
    .describe('Prices of calls with long prompts. They apply to the whole call. A price that a tier leaves out has the default of a route.'),
  dialect: z.enum(['openai', 'openai-responses', 'anthropic', 'gemini']).optional().describe("Wire format of this route. Default: the provider's."),
  image_style: z.enum(imageStyleIds).optional().describe("Images: how this route is asked for them. Default: the provider's."),
  inr_per_image: inr.optional().describe("Images: ₹ per generated image on this route. Default: the model's."),
  inr_per_image_most: inr
    .optional()
    .describe('Images: ₹ per generated image that is asked for larger, better or with more steps. Absent: such images are not made on the platform key.'),
  inr_per_input_image: inr
    .optional()
    .describe('Images: ₹ per image that comes with a request to be edited. Default: it is in the price of those that are delivered.'),
  inr_per_minute: inr.optional().describe('Transcription: ₹ per minute of audio, counted by the second.'),
  inr_per_million_characters: inr.optional().describe('Speech: ₹ per million input characters.'),
  inr_per_thousand_searches: inr
    .optional()
    .describe('Rerank: ₹ per thousand searches of at most 100 documents. Leave it out where the provider bills tokens, and give input_inr_per_mtok.'),
  residency: residency.optional().describe("Default: the provider's."),
  byok_only: z.boolean().optional().describe("Never served on the platform's key."),
  context_length: tokens.optional().describe("Context window of this route. Default: the model's."),
  cache_ttl_seconds: cacheTtl.optional().describe("Default: the provider's."),
  rank: z.int().min(1).max(1000).optional().describe('Curated quality rank among the routes of a model, 1 is best.'),
  source: z.string().min(1).max(200).optional().describe('The source of the price. Default: operator file.'),
  as_of: z.iso.date().optional().describe('Day on which the price was read.'),
})

/** One model with the routes that serve it. */
export const modelEntry = z.strictObject({
  id: id.describe('What callers send as `model`.'),
  kind: z.enum(['chat', 'embedding', 'image', 'transcription', 'speech', 'rerank', 'moderation']).optional().describe('Default: chat.'),
  owned_by: z.string().min(1).max(128).optional().describe('Default: operator.'),
  languages: words.optional().describe('Language tags. Default: en.'),
  context_length: tokens.optional(),
  max_output_tokens: tokens.optional(),
  tools: z.boolean().optional().describe('Takes function definitions. Default: false.'),
  modalities: words.optional().describe('text, image, audio, embedding … Default: by kind.'),
  supported_parameters: words.optional(),
  reasoning: z.boolean().optional().describe('Part of the completion is hidden reasoning. Default: false.'),
  openness: z.enum(['open', 'permissive', 'closed']).optional(),
  inr_per_image: inr.optional().describe('Images: ₹ per generated image.'),
  efforts: words
    .optional()
    .describe('Values of reasoning_effort that the model takes, from the least to the most. Default: not known, so values go on as they are.'),
  thinking: z.enum(['optional', 'always']).optional().describe('always: the model cannot answer without reasoning. Default: optional.'),
  image_max_edge: z.int().min(1).max(16_384).optional().describe('Vision: longest edge of an input image that the model makes use of, in pixels.'),
  edits: z.boolean().optional().describe('Images: takes images to edit. Default: false.'),
  dimensions: z.int().min(1).max(100_000).optional().describe('Embeddings: length of a vector.'),
  default_voice: z.string().min(1).max(128).optional().describe("Speech: the voice of calls that name none. Default: the provider's own."),
  compare_with: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .optional()
    .describe('Id in the price list of GET /v1/pricing/compare. Default: the model of the same name there; null: no comparison.'),
  gated: z.boolean().optional().describe('Needs a data-retention window of the organisation. Default: false.'),
  routes: z.array(routeEntry).min(1).max(50).optional().describe("Replaces the catalog's routes of this model. Required for a new model."),
})

/** catalog/providers.json. */
export const providersFile = z.strictObject({ providers: z.array(providerEntry) })

/** catalog/models.json and catalog/images.json. Routes name a price source by a short name, and `sources` contains its full text. */
export const modelsFile = z.strictObject({
  sources: z.record(z.string(), z.strictObject({ text: z.string(), as_of: z.iso.date() })),
  models: z.array(modelEntry),
})

/** The operator's file. It adds entries to the catalog or overrides them by id. */
export const operatorFile = z.strictObject({
  $schema: z.string().optional(),
  providers: z.array(providerEntry).max(500).optional().describe('Providers to add, or to change by id.'),
  models: z.array(modelEntry).max(5000).optional().describe('Models to add, or to change by id.'),
  rankings: rankingsOverride.optional().describe('Orders of models that presets and quality-prediction routing walk; a list replaces ours whole.'),
})

export type ProviderEntry = z.output<typeof providerEntry>
export type RouteEntry = z.output<typeof routeEntry>
export type ModelEntry = z.output<typeof modelEntry>
export type OperatorFile = z.output<typeof operatorFile>

/** Returns the JSON schema of the operator's file for editors. It is published as docs/reference/brigade.config.schema.json. */
export function operatorFileJsonSchema(): Record<string, unknown> {
  return { title: 'Brigade operator file', ...z.toJSONSchema(operatorFile, { target: 'draft-2020-12', io: 'input' }) }
}
