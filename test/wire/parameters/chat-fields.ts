/** Every parameter of OpenAI chat completions. The type requires one row for each parameter of the installed SDK. */
import type { ChatCompletionCreateParams } from 'openai/resources/chat/completions'
import { carried, dropped, everywhere, type Fate, met, type Row } from './fate.ts'

export const chatTargets = ['anthropic', 'gemini', 'openai-responses'] as const
type Target = (typeof chatTargets)[number]

const row = (body: Row<Target>['body'], anthropic: Fate, gemini: Fate, responses: Fate): Row<Target> => ({
  body,
  fate: { anthropic, gemini, 'openai-responses': responses },
})
const lost = (body: Row<Target>['body'], ...names: readonly string[]): Row<Target> => everywhere(chatTargets, body, dropped(...names))

const look = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } } }
const legacy = [{ name: 'old_way', parameters: { type: 'object', properties: {} } }]
const reply = { type: 'object', properties: { town: { type: 'string' } }, required: ['town'], additionalProperties: false }

type Parameter = keyof ChatCompletionCreateParams

export const chatFields = {
  messages: everywhere(chatTargets, { messages: [{ role: 'user', content: 'Where is Pune?' }] }, carried('Where is Pune?')),
  model: row({}, carried('"model":"anthropic-upstream"'), carried('/models/gemini-upstream:'), carried('"model":"responses-upstream"')),
  audio: lost({ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }, 'audio', 'modalities'),
  modalities: lost({ modalities: ['text', 'audio'] }, 'modalities'),
  frequency_penalty: row({ frequency_penalty: 0.41 }, dropped('frequency_penalty'), carried('"frequencyPenalty":0.41'), dropped('frequency_penalty')),
  presence_penalty: row({ presence_penalty: 0.42 }, dropped('presence_penalty'), carried('"presencePenalty":0.42'), dropped('presence_penalty')),
  functions: lost({ functions: legacy }, 'functions'),
  function_call: lost({ functions: legacy, function_call: { name: 'old_way' } }, 'functions', 'function_call'),
  logit_bias: lost({ logit_bias: { 50256: -100 } }, 'logit_bias'),
  logprobs: lost({ logprobs: true }, 'logprobs'),
  top_logprobs: lost({ logprobs: true, top_logprobs: 3 }, 'logprobs', 'top_logprobs'),
  max_completion_tokens: row(
    { max_completion_tokens: 1234 },
    carried('"max_tokens":1234'),
    carried('"maxOutputTokens":1234'),
    carried('"max_output_tokens":1234'),
  ),
  max_tokens: row({ max_tokens: 1235 }, carried('"max_tokens":1235'), carried('"maxOutputTokens":1235'), carried('"max_output_tokens":1235')),
  metadata: row({ metadata: { team: 'blue' } }, dropped('metadata'), dropped('metadata'), carried('"metadata":{"team":"blue"}')),
  moderation: row({ moderation: { model: 'omni' } }, dropped('moderation'), dropped('moderation'), carried('"moderation":{"model":"omni"}')),
  n: row({ n: 2 }, dropped('n'), carried('"candidateCount":2'), dropped('n')),
  parallel_tool_calls: row(
    { tools: [look], parallel_tool_calls: false },
    carried('"disable_parallel_tool_use":true'),
    dropped('parallel_tool_calls'),
    carried('"parallel_tool_calls":false'),
  ),
  prediction: lost({ prediction: { type: 'content', content: 'x' } }, 'prediction'),
  prompt_cache_key: row({ prompt_cache_key: 'pk' }, dropped('prompt_cache_key'), dropped('prompt_cache_key'), carried('"prompt_cache_key":"pk"')),
  prompt_cache_options: row(
    { prompt_cache_options: { mode: 'explicit' } },
    dropped('prompt_cache_options'),
    dropped('prompt_cache_options'),
    carried('"prompt_cache_options":{"mode":"explicit"}'),
  ),
  prompt_cache_retention: row(
    { prompt_cache_retention: '24h' },
    dropped('prompt_cache_retention'),
    dropped('prompt_cache_retention'),
    dropped('prompt_cache_retention'),
  ),
  reasoning_effort: row(
    { reasoning_effort: 'high' },
    carried('"thinking":{"type":"enabled","budget_tokens":1744}'),
    carried('"thinkingConfig":{"thinkingBudget":'),
    carried('"reasoning":{"effort":"high"}'),
  ),
  response_format: row(
    { response_format: { type: 'json_schema', json_schema: { name: 'place', description: 'A town.', schema: reply, strict: true } } },
    carried(
      '"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"town":{"type":"string"}},"required":["town"],"additionalProperties":false,"description":"A town."}}}',
    ),
    carried('"responseSchema":{"type":"object","properties":{"town":{"type":"string"}},"required":["town"],"description":"A town."}'),
    carried('"text":{"format":{"type":"json_schema","name":"place","description":"A town.","schema":{"type":"object"'),
  ),
  safety_identifier: row(
    { safety_identifier: 'sid' },
    carried('"metadata":{"user_id":"sid"}'),
    dropped('safety_identifier'),
    carried('"safety_identifier":"sid"'),
  ),
  seed: row({ seed: 4711 }, dropped('seed'), carried('"seed":4711'), dropped('seed')),
  service_tier: row({ service_tier: 'default' }, carried('"service_tier":"standard_only"'), dropped('service_tier'), carried('"service_tier":"default"')),
  stop: row({ stop: ['END'] }, carried('"stop_sequences":["END"]'), carried('"stopSequences":["END"]'), dropped('stop')),
  store: lost({ store: true }, 'store'),
  stream: row({ stream: true }, carried('"stream":true'), carried(':streamGenerateContent?alt=sse'), carried('"stream":true')),
  stream_options: row(
    { stream: true, stream_options: { include_usage: true, include_obfuscation: true } },
    carried('"stream":true', 'stream_options.include_obfuscation'),
    carried(':streamGenerateContent', 'stream_options.include_obfuscation'),
    carried('"stream_options":{"include_obfuscation":true}'),
  ),
  temperature: row({ temperature: 0.37 }, carried('"temperature":0.37'), carried('"temperature":0.37'), carried('"temperature":0.37')),
  tool_choice: row(
    { tools: [look], tool_choice: 'required' },
    carried('"tool_choice":{"type":"any"}'),
    carried('"mode":"ANY"'),
    carried('"tool_choice":"required"'),
  ),
  tools: row(
    { tools: [look] },
    carried('"tools":[{"name":"look"'),
    carried('"functionDeclarations":[{"name":"look"'),
    carried('"tools":[{"type":"function","name":"look"'),
  ),
  top_p: row({ top_p: 0.53 }, carried('"top_p":0.53'), carried('"topP":0.53'), carried('"top_p":0.53')),
  user: row({ user: 'u-1' }, carried('"metadata":{"user_id":"u-1"}'), dropped('user'), carried('"user":"u-1"')),
  verbosity: row({ verbosity: 'low' }, dropped('verbosity'), dropped('verbosity'), carried('"verbosity":"low"')),
  web_search_options: lost({ web_search_options: { search_context_size: 'low' } }, 'web_search_options'),
} as const satisfies Record<Parameter, Row<Target>>

/** Parameters that clients send although the SDK does not have them, and values that ask for nothing. */
export const otherChatFields = {
  top_k: row({ top_k: 7 }, carried('"top_k":7'), carried('"topK":7'), dropped('top_k')),
  min_p: lost({ min_p: 0.1 }, 'min_p'),
  repetition_penalty: lost({ repetition_penalty: 1.2 }, 'repetition_penalty'),
  'a field of a vendor': lost({ vendor_thing: { deep: [1, 2] } }, 'vendor_thing'),
  'store: false': everywhere(chatTargets, { store: false }, met('nothing is ever stored')),
  'stream_options.include_usage': everywhere(
    chatTargets,
    { stream: true, stream_options: { include_usage: false } },
    met('the gateway itself keeps the chunk back'),
  ),
  'values that ask for nothing': everywhere(
    chatTargets,
    { n: 1, logprobs: false, frequency_penalty: 0, presence_penalty: 0, logit_bias: {}, modalities: ['text'], seed: null, stop: null, tools: [], metadata: {} },
    met('they say what is true anyway'),
  ),
  'response_format json_object': row(
    { response_format: { type: 'json_object' } },
    carried('"tool_choice":{"type":"tool","name":"br_json_reply"}'),
    carried('"responseMimeType":"application/json"'),
    carried('"text":{"format":{"type":"json_object"}}'),
  ),
  'response_format of another type': row(
    { response_format: { type: 'grammar', grammar: 'x' } },
    dropped('response_format'),
    dropped('response_format'),
    carried('"format":{"type":"grammar"'),
  ),
  'service_tier flex': row({ service_tier: 'flex' }, dropped('service_tier'), dropped('service_tier'), carried('"service_tier":"flex"')),
} as const satisfies Record<string, Row<Target>>
