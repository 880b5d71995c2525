/**
 * Decides which fields of a request are sent to a provider on the platform's key. These are the fields of the format's public reference, with
 * exceptions. Fields that choose models, routes, stored files, retention or paid extras are not sent. A catalog row can add fields of its provider,
 * or allow all fields. Decision 0385 gives the reasons.
 */
import type { Provider } from './provider.ts'

type Fields = Readonly<Record<string, unknown>>

/** A rule of `true` sends the field with any value. A function is called with the value and the whole body, and returns whether the field is sent. */
type FieldRule = true | ((value: unknown, body: Fields) => boolean)
export type FieldRules = ReadonlyMap<string, FieldRule>

const passing = (...names: readonly string[]): [string, FieldRule][] => names.map(name => [name, true])

/** Service tiers that cost the listed price or less. */
const plainTiers: readonly unknown[] = ['auto', 'default', 'standard', 'standard_only', 'flex']
const isPlainTier = (value: unknown): boolean => plainTiers.includes(value)
/** Returns whether the value is the short cache time. With any other value, the provider keeps prompts for hours. */
const isShortCache = (value: unknown): boolean => value === 'in_memory' || value === 'in-memory'
const isFalse = (value: unknown): boolean => value === false
/** Returns whether only text is requested. Audio and pictures cost more than text, and the model has only the price of text. */
const isTextAlone = (value: unknown): boolean => Array.isArray(value) && value.every(each => each === 'text')

/**
 * Fields outside the public reference that nearly every server of open models knows. They change how tokens are sampled or how the model thinks. The
 * resulting tokens are counted.
 */
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
 * Fields of OpenAI chat completions. Some fields are missing on purpose. `web_search_options` is billed by the search. `audio`, and `modalities`
 * other than text, produce more expensive tokens. `store` keeps the answer in the operator's account, with `metadata` as its label. Some tiers and
 * cache times cost more than the listed price.
 */
export const chatFields: FieldRules = new Map<string, FieldRule>([
  // The prompt and the model. Parts and tools are checked separately.
  ...passing('model', 'messages', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call'),
  // The length and the form of the answer. All of it is counted as tokens.
  ...passing('max_tokens', 'max_completion_tokens', 'n', 'stop', 'stream', 'stream_options', 'response_format', 'verbosity', 'prediction'),
  // Sampling and thinking.
  ...passing('temperature', 'top_p', 'seed', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs', 'reasoning_effort'),
  ...sampling,
  // The end user, for the provider's abuse protection, and a content check that costs nothing.
  ...passing('user', 'safety_identifier', 'moderation'),
  // The key under which the provider looks up cached prompts.
  ...passing('prompt_cache_key', 'prompt_cache_options'),
  ['prompt_cache_retention', isShortCache],
  ['service_tier', isPlainTier],
  ['modalities', isTextAlone],
  ['store', isFalse],
  ['metadata', (_value, body) => body['store'] !== true],
])

/** Fields of OpenAI embeddings. `input_type`, the kind of text, is an addition that many models use. */
export const embeddingFields: FieldRules = new Map(passing('model', 'input', 'dimensions', 'encoding_format', 'user', 'input_type'))

/** Fields of requests to rank documents. `priority` is missing, because it puts a call before those of others on the operator's account. */
export const rerankFields: FieldRules = new Map(passing('model', 'query', 'documents', 'top_n', 'return_documents', 'max_tokens_per_doc'))

/** Fields of OpenAI moderations. */
export const moderationFields: FieldRules = new Map(passing('model', 'input'))

/** Fields of relayed OpenAI responses. The relay sets `store` to false. The gateway has already refused features that the provider stores or runs. */
export const responsesFields: FieldRules = new Map<string, FieldRule>([
  ...passing('model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_tool_calls', 'context_management'),
  ...passing('max_output_tokens', 'stream', 'stream_options', 'include', 'text', 'truncation', 'store', 'background', 'metadata'),
  ...passing('temperature', 'top_p', 'top_logprobs', 'reasoning', 'user', 'safety_identifier', 'moderation', 'prompt_cache_key', 'prompt_cache_options'),
  ['prompt_cache_retention', isShortCache],
  ['service_tier', isPlainTier],
])

/** Fields of relayed Anthropic messages. `container` and `mcp_servers` are missing, because they name things that the provider stores or runs. */
export const messagesFields: FieldRules = new Map<string, FieldRule>([
  ...passing('model', 'messages', 'system', 'tools', 'tool_choice', 'max_tokens', 'stop_sequences', 'stream', 'metadata', 'cache_control'),
  ...passing('temperature', 'top_p', 'top_k', 'thinking', 'output_config', 'output_format', 'context_management', 'mcp_servers', 'speed', 'inference_geo'),
  ['service_tier', isPlainTier],
])

/**
 * Fields of relayed requests of Google's generateContent, under both of their names. `cachedContent`, `labels` and `store` are missing, because they name
 * things that the provider stores, and `serviceTier` may choose a dearer tier.
 */
export const geminiFields: FieldRules = new Map(
  passing(
    ...['model', 'contents', 'tools', 'systemInstruction', 'system_instruction', 'toolConfig', 'tool_config'],
    ...['safetySettings', 'safety_settings', 'generationConfig', 'generation_config'],
  ),
)

/** Names of `anthropic-beta` that change the form of requests and answers. They change neither the cost of tokens nor what the provider stores. */
export const plainBetas =
  /^(?:adaptive-thinking|advanced-tool-use|claude-code|computer-use|context-management|effort|fine-grained-tool-streaming|interleaved-thinking|max-tokens-3-5-sonnet|model-context-window-exceeded|output-128k|pdfs|prompt-caching|prompt-caching-scope|redact-thinking|structured-outputs|summarize-connector-text|token-counting|token-efficient-tools|tool-examples|tool-search-tool)-\d/

/** Fields of image requests that the gateway does not read itself. */
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

/** Fields of speech requests. A voice that is not a plain name is a custom voice from the provider's account. */
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
 * Hosts on which providers store files of the calling account, other than the called host. A regional host has its region as a prefix
 * (`us-central1-aiplatform.googleapis.com`).
 */
export const fileStoreHosts: readonly string[] = [
  'generativelanguage.googleapis.com',
  'aiplatform.googleapis.com',
  'storage.cloud.google.com',
  'api.openai.com',
  'api.anthropic.com',
]

/**
 * Returns the names in a body that are not sent to this provider on the platform's key. When all names are sent, it returns the same empty list each
 * time.
 */
export function heldBack(body: Fields, rules: FieldRules, { forwards, fields }: Pick<Provider, 'forwards' | 'fields'>): readonly string[] {
  if (forwards === 'all') return none
  let names: string[] | null = null
  for (const name of Object.keys(body)) {
    const rule = rules.get(name)
    if (rule === true) continue
    const value = body[name]
    // Null means that the field requests nothing.
    if (value === null || value === undefined || rule?.(value, body) || fields?.has(name)) continue
    names ??= []
    names.push(name)
  }
  return names ?? none
}

const none: readonly string[] = Object.freeze([])
