/** Every parameter of OpenAI responses. The type requires one row for each parameter of the installed SDK. */
import type { ResponseCreateParams } from 'openai/resources/responses/responses'
import { carried, dropped, everywhere, type Fate, met, type Row, refused } from './fate.ts'

export const responsesTargets = ['openai', 'anthropic', 'gemini'] as const
type Target = (typeof responsesTargets)[number]

const row = (body: Row<Target>['body'], openai: Fate, anthropic: Fate, gemini: Fate): Row<Target> => ({ body, fate: { openai, anthropic, gemini } })
const all = (body: Row<Target>['body'], fate: Fate): Row<Target> => everywhere(responsesTargets, body, fate)
const echoed = met('no provider needs it: the reply hands it back, which is all that the API does with it')

const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } }, strict: false }
const reply = { type: 'object', properties: { town: { type: 'string' } }, required: ['town'], additionalProperties: false }

export const responsesFields = {
  access_programs: all({ access_programs: { cyber: 'standard' } }, dropped('access_programs')),
  background: all({ background: true }, refused('"background"')),
  context_management: all({ context_management: [{ type: 'compaction', compact_threshold: 9000 }] }, dropped('context_management')),
  conversation: all({ conversation: 'conv_1' }, refused('"conversation"')),
  image: all({ image: { context_compression: 'enabled' } }, dropped('image')),
  include: all({ include: ['message.output_text.logprobs'] }, dropped('include')),
  input: all({ input: 'Where is Pune?' }, carried('Where is Pune?')),
  instructions: row(
    { instructions: 'Be brief.' },
    carried('{"role":"system","content":"Be brief."}'),
    carried('"system":"Be brief."'),
    carried('"systemInstruction":{"parts":[{"text":"Be brief."}]}'),
  ),
  max_output_tokens: row({ max_output_tokens: 1237 }, carried('"max_tokens":1237'), carried('"max_tokens":1237'), carried('"maxOutputTokens":1237')),
  max_tool_calls: all({ max_tool_calls: 2 }, dropped('max_tool_calls')),
  metadata: all({ metadata: { team: 'blue' } }, echoed),
  model: row({}, carried('"model":"openai-upstream"'), carried('"model":"anthropic-upstream"'), carried('/models/gemini-upstream:')),
  moderation: all({ moderation: { model: 'omni' } }, dropped('moderation')),
  parallel_tool_calls: row(
    { tools: [look], parallel_tool_calls: false },
    carried('"parallel_tool_calls":false'),
    carried('"disable_parallel_tool_use":true'),
    carried('look', 'parallel_tool_calls'),
  ),
  previous_response_id: all({ previous_response_id: 'resp_1' }, refused('"previous_response_id"')),
  prompt: all({ prompt: { id: 'pmpt_1' } }, refused('"prompt"')),
  prompt_cache_key: all({ prompt_cache_key: 'pk' }, dropped('prompt_cache_key')),
  prompt_cache_options: all({ prompt_cache_options: { mode: 'explicit' } }, dropped('prompt_cache_options')),
  prompt_cache_retention: all({ prompt_cache_retention: '24h' }, dropped('prompt_cache_retention')),
  reasoning: row(
    { reasoning: { effort: 'high' } },
    carried('"reasoning_effort":"high"'),
    carried('"thinking":{"type":"enabled","budget_tokens":1744}'),
    carried('"thinkingConfig":{"thinkingBudget":'),
  ),
  safety_identifier: row({ safety_identifier: 'sid' }, carried('"user":"sid"'), carried('"metadata":{"user_id":"sid"}'), dropped('safety_identifier')),
  service_tier: row({ service_tier: 'flex' }, carried('"service_tier":"flex"'), dropped('service_tier'), dropped('service_tier')),
  store: all({ store: true }, dropped('store')),
  stream: row({ stream: true }, carried('"stream":true'), carried('"stream":true'), carried(':streamGenerateContent')),
  stream_options: all({ stream: true, stream_options: { include_obfuscation: true } }, carried('tream', 'stream_options.include_obfuscation')),
  temperature: all({ temperature: 0.37 }, carried('"temperature":0.37')),
  text: row(
    { text: { format: { type: 'json_schema', name: 'place', schema: reply, strict: true }, verbosity: 'low' } },
    carried('"response_format":{"type":"json_schema","json_schema":{"name":"place"', 'text.verbosity'),
    carried('"output_config":{"format":{"type":"json_schema"', 'text.verbosity'),
    carried('"responseSchema":{"type":"object"', 'text.verbosity'),
  ),
  tool_choice: row(
    { tools: [look], tool_choice: 'required' },
    carried('"tool_choice":"required"'),
    carried('"tool_choice":{"type":"any"}'),
    carried('"mode":"ANY"'),
  ),
  tools: row(
    { tools: [look] },
    carried('"tools":[{"type":"function","function":{"name":"look"'),
    carried('"tools":[{"name":"look"'),
    carried('"functionDeclarations":[{"name":"look"'),
  ),
  top_logprobs: all({ top_logprobs: 3 }, dropped('top_logprobs')),
  top_p: row({ top_p: 0.53 }, carried('"top_p":0.53'), carried('"top_p":0.53'), carried('"topP":0.53')),
  truncation: all({ truncation: 'auto' }, dropped('truncation')),
  user: row({ user: 'u-1' }, carried('"user":"u-1"'), carried('"metadata":{"user_id":"u-1"}'), dropped('user')),
} as const satisfies Record<keyof ResponseCreateParams, Row<Target>>

/** Parameters that the SDK does not have, parts of parameters, values that ask for nothing, and invalid values. */
export const otherResponsesFields = {
  'an unknown field': all({ vendor_thing: true }, dropped('vendor_thing')),
  'reasoning.summary': row(
    { reasoning: { effort: 'high', summary: 'auto' } },
    carried('"reasoning_effort":"high"'),
    carried('"thinking":{"type":"enabled"'),
    carried('"includeThoughts":true'),
  ),
  'reasoning.context and reasoning.mode': all({ reasoning: { context: 'all_turns', mode: 'pro' } }, dropped('reasoning.context', 'reasoning.mode')),
  'text.format of no known type': all({ text: { format: { type: 'grammar' } } }, refused('"text.format"')),
  'web search beside other tools': all({ tools: [look, { type: 'web_search' }] }, carried('look', 'tools.web_search')),
  'a strict tool': row({ tools: [{ ...look, strict: true }] }, carried('"strict":true'), carried('"strict":true'), carried('look', 'tools.strict')),
  'more of a tool': all(
    { tools: [{ ...look, defer_loading: true, async: true, allowed_callers: ['direct'], output_schema: reply }] },
    carried('look', 'tools.defer_loading', 'tools.async', 'tools.allowed_callers', 'tools.output_schema'),
  ),
  'values that ask for nothing': all(
    {
      store: false,
      truncation: 'disabled',
      top_logprobs: 0,
      include: ['reasoning.encrypted_content'],
      metadata: {},
      background: false,
      tools: [],
      text: { format: { type: 'text' } },
      service_tier: 'auto',
      prompt_cache_key: null,
      stream_options: null,
      parallel_tool_calls: true,
    },
    met('they say what is true anyway'),
  ),
} as const satisfies Record<string, Row<Target>>
