/**
 * Which fields of a request go on to a provider on the platform's key: those of the format's public reference, less what chooses models,
 * routes, stored files, retention or paid extras. A row of the catalog adds fields of its provider, or lets everything through.
 * Decision 0385 says why.
 */
import type { Provider } from './provider.ts'

type Fields = Readonly<Record<string, unknown>>

/** true: goes on whatever its value is. A function: goes on where it says so of the value and the whole body. */
type FieldRule = true | ((value: unknown, body: Fields) => boolean)
export type FieldRules = ReadonlyMap<string, FieldRule>

const passing = (...names: readonly string[]): [string, FieldRule][] => names.map(name => [name, true])

/** Tiers that cost the listed price, or less. */
const plainTiers: readonly unknown[] = ['auto', 'default', 'standard', 'standard_only', 'flex']
const isPlainTier = (value: unknown): boolean => plainTiers.includes(value)
/** Anything else has the provider keep prompts for hours. */
const isShortCache = (value: unknown): boolean => value === 'in_memory' || value === 'in-memory'
const isFalse = (value: unknown): boolean => value === false
/** Audio and pictures are dearer than the one price of text. */
const isTextAlone = (value: unknown): boolean => Array.isArray(value) && value.every(each => each === 'text')

/** What nearly every server of open models knows beside the reference: it changes how tokens are drawn or thought, and they are counted. */
const sampling = passing(
  'top_k',
  'min_p',
  'top_a',
  'typical_p',
  'repetition_penalty',
  'min_tokens',
  'stop_token_ids',
  'reasoning',
  'thinking',
  'thinking_budget',
  'enable_thinking',
  'include_reasoning',
  'reasoning_format',
  'chat_template_kwargs',
)

/**
 * OpenAI chat completions. Not among them: `web_search_options` (billed by the search), `audio` and `modalities` but text (dearer tokens),
 * `store` (keeps the answer in the operator's account, with `metadata` as its label), tiers and cache times above the listed price.
 */
export const chatFields: FieldRules = new Map<string, FieldRule>([
  // What is asked, and of whom. Parts and tools are looked at in themselves.
  ...passing('model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call'),
  // How much and in which form: all of it is counted as tokens.
  ...passing('max_tokens', 'max_completion_tokens', 'n', 'stop', 'stream', 'stream_options', 'response_format', 'verbosity', 'prediction'),
  // How tokens are drawn and thought.
  ...passing('temperature', 'top_p', 'seed', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'reasoning_effort'),
  ...sampling,
  // Who asks, for the provider's own protection, and a check of the content that costs nothing.
  ...passing('user', 'safety_identifier', 'moderation'),
  // Where cached prompts are looked for.
  ...passing('prompt_cache_key', 'prompt_cache_options'),
  ['prompt_cache_retention', isShortCache],
  ['service_tier', isPlainTier],
  ['modalities', isTextAlone],
  ['store', isFalse],
  ['metadata', (_value, body) => body['store'] !== true],
])

/** OpenAI embeddings, and what kind of text it is (`input_type`), which many models want to know. */
export const embeddingFields: FieldRules = new Map(passing('model', 'input', 'dimensions', 'encoding_format', 'user', 'input_type'))

/** OpenAI responses as they are relayed. `store` is set to false there; what is stored or run by the provider is refused before. */
export const responsesFields: FieldRules = new Map<string, FieldRule>([
  ...passing('model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'context_management'),
  ...passing('max_output_tokens', 'stream', 'stream_options', 'include', 'text', 'truncation', 'store', 'background', 'metadata'),
  ...passing('temperature', 'top_p', 'top_logprobs', 'reasoning', 'user', 'safety_identifier', 'moderation', 'prompt_cache_key', 'prompt_cache_options'),
  ['prompt_cache_retention', isShortCache],
  ['service_tier', isPlainTier],
])

/** Anthropic messages as they are relayed. `container` and `mcp_servers` name what is kept or run at the provider. */
export const messagesFields: FieldRules = new Map<string, FieldRule>([
  ...passing('model', 'messages', 'system', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'stream', 'metadata', 'cache_control'),
  ...passing('temperature', 'top_p', 'top_k', 'thinking', 'output_config', 'output_format', 'context_management', 'mcp_servers', 'speed', 'inference_geo'),
  ['service_tier', isPlainTier],
])

/** Names of `anthropic-beta` that change the form of requests and answers, and not what the tokens cost or where anything is kept. */
export const plainBetas =
  /^(?:adaptive-thinking|advanced-tool-use|claude-code|computer-use|context-management|effort|fine-grained-tool-streaming|interleaved-thinking|max-tokens-3-5-sonnet|model-context-window-exceeded|output-128k|pdfs|prompt-caching|prompt-caching-scope|redact-thinking|structured-outputs|summarize-connector-text|token-counting|token-efficient-tools|tool-examples|tool-search-tool)-\d/

/** Pictures, beside those that the gateway reads itself. */
export const imageFields: FieldRules = new Map(
  passing(
    'background',
    'moderation',
    'output_compression',
    'output_format',
    'style',
    'input_fidelity',
    'safety_identifier',
    'negative_prompt',
    'seed',
    'guidance_scale',
    'guidance',
    'cfg_scale',
    'aspect_ratio',
    'style_preset',
    'watermark',
  ),
)

/** A custom voice is stored in the provider's account. */
export const speechFields: FieldRules = new Map<string, FieldRule>([
  ...passing('model', 'input', 'instructions', 'response_format', 'speed', 'stream_format', 'language', 'sample_rate'),
  ['voice', value => typeof value === 'string'],
])

export const transcriptionFields: FieldRules = new Map(
  passing(
    'model',
    'language',
    'languages',
    'prompt',
    'keywords',
    'response_format',
    'temperature',
    'stream',
    'chunking_strategy',
    ...['include', 'timestamp_granularities', 'known_speaker_names', 'known_speaker_references'].flatMap(name => [name, `${name}[]`]),
  ),
)

/**
 * Hosts where providers keep files of the account that calls, beside the host that is called. A regional host has its region in front
 * (`us-central1-aiplatform.googleapis.com`).
 */
export const fileStoreHosts: readonly string[] = [
  'generativelanguage.googleapis.com',
  'aiplatform.googleapis.com',
  'storage.cloud.google.com',
  'api.openai.com',
  'api.anthropic.com',
]

/** Names of a body that do not go on to this provider on the platform's key; the same empty list when all do. */
export function heldBack(body: Fields, rules: FieldRules, { forwards, fields }: Pick<Provider, 'forwards' | 'fields'>): readonly string[] {
  if (forwards === 'all') return none
  let names: string[] | null = null
  for (const name of Object.keys(body)) {
    const rule = rules.get(name)
    if (rule === true) continue
    const value = body[name]
    // null asks for nothing.
    if (value === null || value === undefined || rule?.(value, body) || fields?.has(name)) continue
    names ??= []
    names.push(name)
  }
  return names ?? none
}

const none: readonly string[] = Object.freeze([])
