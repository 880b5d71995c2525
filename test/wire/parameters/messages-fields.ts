/** Every parameter of Anthropic messages, including beta parameters. The types require one row for each parameter of the installed SDK. */
import type { MessageCreateParams as BetaParams } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { MessageCreateParams } from '@anthropic-ai/sdk/resources/messages/messages'
import { carried, dropped, everywhere, type Fate, met, type Row, refused } from './fate.ts'

export const messagesTargets = ['openai', 'gemini', 'openai-responses'] as const
type Target = (typeof messagesTargets)[number]

const row = (body: Row<Target>['body'], openai: Fate, gemini: Fate, responses: Fate): Row<Target> => ({
  body,
  fate: { openai, gemini, 'openai-responses': responses },
})
const all = (body: Row<Target>['body'], fate: Fate): Row<Target> => everywhere(messagesTargets, body, fate)

const look = { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } }
const reply = { type: 'object', properties: { town: { type: 'string' } }, required: ['town'], additionalProperties: false }

/** `betas` is left out, because it is a header of the API that the SDK accepts as a parameter. */
type Parameter = keyof MessageCreateParams | Exclude<keyof BetaParams, 'betas'>

export const messagesFields = {
  model: row({}, carried('"model":"openai-upstream"'), carried('/models/gemini-upstream:'), carried('"model":"responses-upstream"')),
  messages: all({ messages: [{ role: 'user', content: 'Where is Pune?' }] }, carried('Where is Pune?')),
  max_tokens: row({ max_tokens: 1236 }, carried('"max_tokens":1236'), carried('"maxOutputTokens":1236'), carried('"max_output_tokens":1236')),
  billing_policy: all({ billing_policy: { type: 'x' } }, dropped('billing_policy')),
  cache_control: all({ cache_control: { type: 'ephemeral' } }, dropped('cache_control')),
  compaction: all({ compaction: { type: 'x' } }, dropped('compaction')),
  container: all({ container: 'c-1' }, dropped('container')),
  context_management: all({ context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } }, dropped('context_management')),
  diagnostics: all({ diagnostics: { previous_message_id: 'msg_1' } }, dropped('diagnostics')),
  fallback_credit_token: all({ fallback_credit_token: 't' }, dropped('fallback_credit_token')),
  // The gateway has its own field of this name, a chain of models. A value that is not a chain is refused.
  fallbacks: all({ fallbacks: [{ model: 'openai-model', max_tokens: 5 }] }, refused('"fallbacks[0]"')),
  inference_geo: all({ inference_geo: 'us' }, dropped('inference_geo')),
  mcp_servers: all({ mcp_servers: [{ type: 'url', url: 'https://mcp.example.test', name: 'm' }] }, refused('"mcp_servers"')),
  metadata: row({ metadata: { user_id: 'u-1' } }, carried('"user":"u-1"'), dropped('metadata.user_id'), carried('"user":"u-1"')),
  output_config: row(
    { output_config: { effort: 'low' } },
    carried('"reasoning_effort":"low"'),
    carried('"thinkingConfig":{"thinkingBudget":'),
    carried('"reasoning":{"effort":"low"}'),
  ),
  output_format: row(
    { output_format: { type: 'json_schema', schema: reply } },
    carried('"response_format":{"type":"json_schema","json_schema":{"name":"reply","schema":{"type":"object"'),
    carried('"responseSchema":{"type":"object","properties":{"town"'),
    carried('"text":{"format":{"type":"json_schema","name":"reply"'),
  ),
  service_tier: all({ service_tier: 'standard_only' }, dropped('service_tier')),
  speed: all({ speed: 'fast' }, dropped('speed')),
  stop_sequences: row({ stop_sequences: ['END'] }, carried('"stop":["END"]'), carried('"stopSequences":["END"]'), dropped('stop_sequences')),
  stream: row({ stream: true }, carried('"stream":true'), carried(':streamGenerateContent'), carried('"stream":true')),
  system: row(
    { system: 'Be brief.' },
    carried('{"role":"system","content":"Be brief."}'),
    carried('"systemInstruction":{"parts":[{"text":"Be brief."}]}'),
    carried('{"role":"system","content":"Be brief."}'),
  ),
  thinking: row(
    { thinking: { type: 'enabled', budget_tokens: 1024 } },
    carried('"reasoning_effort":"low"'),
    carried('"thinkingConfig":{"thinkingBudget":'),
    carried('"reasoning":{"effort":"low"}'),
  ),
  thread: all({ thread: { id: 'x' } }, dropped('thread')),
  tool_choice: row(
    { tools: [look], tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    carried('"tool_choice":"required","parallel_tool_calls":false'),
    carried('"mode":"ANY"', 'tool_choice.disable_parallel_tool_use'),
    carried('"tool_choice":"required","parallel_tool_calls":false'),
  ),
  tools: row(
    { tools: [look] },
    carried('"tools":[{"type":"function","function":{"name":"look"'),
    carried('"functionDeclarations":[{"name":"look"'),
    carried('"tools":[{"type":"function","name":"look"'),
  ),
  user_profile_id: all({ user_profile_id: 'x' }, dropped('user_profile_id')),
  workspace_id: all({ workspace_id: 'x' }, dropped('workspace_id')),
} as const satisfies Record<Parameter, Row<Target>>

/** Parameters of older versions of the API, parts of parameters, values that ask for nothing, and invalid values. */
export const otherMessagesFields = {
  temperature: row({ temperature: 0.37 }, carried('"temperature":0.37'), carried('"temperature":0.37'), carried('"temperature":0.37')),
  top_p: row({ top_p: 0.53 }, carried('"top_p":0.53'), carried('"topP":0.53'), carried('"top_p":0.53')),
  top_k: row({ top_k: 7 }, carried('"top_k":7'), carried('"topK":7'), dropped('top_k')),
  'an unknown field': all({ brand_new: true }, dropped('brand_new')),
  'metadata of another kind': all({ metadata: { team: 'blue' } }, dropped('metadata.team')),
  'output_config.format': row(
    { output_config: { format: { type: 'json_schema', schema: reply } } },
    carried('"response_format":{"type":"json_schema"'),
    carried('"responseSchema":{"type":"object"'),
    carried('"text":{"format":{"type":"json_schema"'),
  ),
  'output_config.format of another type': all({ output_config: { format: { type: 'grammar' } } }, refused('"output_config.format"')),
  'invalid output_format': all({ output_format: 'json' }, refused('"output_format"')),
  'output_config.task_budget': all({ output_config: { task_budget: { type: 'tokens', total: 9 } } }, dropped('output_config.task_budget')),
  'thinking.display': row(
    { thinking: { type: 'enabled', budget_tokens: 1024, display: 'omitted' } },
    carried('"reasoning_effort":"low"', 'thinking.display'),
    carried('"thinkingConfig":', 'thinking.display'),
    carried('"effort":"low"', 'thinking.display'),
  ),
  'thinking between tools': all({ thinking: { type: 'between_tools' } }, dropped('thinking')),
  'thinking adaptive': all({ thinking: { type: 'adaptive' } }, met('how much is left to the model, which is what happens anyway')),
  'thinking disabled': row(
    { thinking: { type: 'disabled' } },
    carried('"reasoning_effort":"none"'),
    carried('"thinkingConfig":{"thinkingBudget":0}'),
    carried('"reasoning":{"effort":"none"}'),
  ),
  'thinking null': all({ thinking: null }, met('nothing is said')),
  'thinking of no known type': all({ thinking: { type: 'much' } }, refused('"thinking')),
  'an invalid temperature': all({ temperature: '0.5' }, refused('"temperature"')),
  'an invalid top_p': all({ top_p: [] }, refused('"top_p"')),
  'an invalid top_k': all({ top_k: 'all' }, refused('"top_k"')),
  'invalid stop_sequences': all({ stop_sequences: 'END' }, refused('"stop_sequences"')),
  'an invalid stop sequence': all({ stop_sequences: ['END', 7] }, refused('"stop_sequences[1]"')),
  'invalid metadata': all({ metadata: 'u-1' }, refused('"metadata"')),
  'values that ask for nothing': all(
    {
      service_tier: 'auto',
      speed: 'standard',
      stop_sequences: [],
      tools: [],
      mcp_servers: [],
      container: null,
      cache_control: null,
      output_config: {},
      metadata: {},
      inference_geo: null,
      context_management: null,
    },
    met('they say what is true anyway'),
  ),
  'more of a tool': all(
    { tools: [{ ...look, strict: false, input_examples: [{ at: 'Pune' }], eager_input_streaming: true, allowed_callers: ['direct'] }] },
    carried('look', 'tools.input_examples', 'tools.eager_input_streaming', 'tools.allowed_callers'),
  ),
  'a strict tool': row(
    { tools: [{ name: 'look', input_schema: reply, strict: true }] },
    carried('"strict":true'),
    carried('"look"', 'tools.strict'),
    carried('"strict":true'),
  ),
  'a strict tool with a property that may be left out': all({ tools: [{ ...look, strict: true }] }, carried('"look"', 'tools.strict')),
  'a deferred tool that was not asked for': all({ tools: [look, { ...look, name: 'far', defer_loading: true }] }, carried('"look"')),
  'a cached tool': all({ tools: [{ ...look, cache_control: { type: 'ephemeral' } }] }, carried('look', 'cache_control')),
} as const satisfies Record<string, Row<Target>>
