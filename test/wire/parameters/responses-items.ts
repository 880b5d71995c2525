/** Every type of input item and tool of OpenAI responses, and the fields of the types that are carried. */
import type { FunctionTool, ResponseFunctionToolCall, ResponseInputContent, ResponseInputItem, Tool } from 'openai/resources/responses/responses'
import { carried, everywhere, type Fate, type Row, refused } from './fate.ts'
import { responsesTargets } from './responses-fields.ts'

type Target = (typeof responsesTargets)[number]
type Item = Readonly<Record<string, unknown>>

const row = (body: Row<Target>['body'], openai: Fate, anthropic: Fate, gemini: Fate): Row<Target> => ({ body, fate: { openai, anthropic, gemini } })
const all = (body: Row<Target>['body'], fate: Fate): Row<Target> => everywhere(responsesTargets, body, fate)

const hello = { role: 'user', content: 'Hello there' }
const items = (...input: readonly Item[]): Row<Target>['body'] => ({ input: [...input, hello] })
const asked = (...content: readonly Item[]): Row<Target>['body'] => ({ input: [{ role: 'user', content }] })
const call = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"Pune"}' }
const output = { type: 'function_call_output', call_id: 'call_1', output: 'Rain' }
const custom = { type: 'custom_tool_call', call_id: 'call_2', name: 'script', input: 'print(1)' }
const customOutput = { type: 'custom_tool_call_output', call_id: 'call_2', output: 'one' }
const look = { type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } }, strict: false }
const searching = { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters: { type: 'object', properties: {} } }
const search = { type: 'tool_search_call', call_id: 'call_3', execution: 'client', arguments: {} }
const searched = { type: 'tool_search_output', call_id: 'call_3', execution: 'client', tools: [look] }
const foreign = (type: string): Row<Target> => all(items({ type }), refused(`"${type}"`))

export const responsesItems = {
  message: all({ input: [{ type: 'message', role: 'user', content: 'Where is Pune?' }] }, carried('Where is Pune?')),
  function_call: row(
    items(call, output),
    carried('"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\\"at\\":\\"Pune\\"}"}}]'),
    carried('{"type":"tool_use","id":"call_1","name":"look","input":{"at":"Pune"}}'),
    carried('"functionCall":{"id":"call_1","name":"look","args":{"at":"Pune"}}'),
  ),
  function_call_output: row(
    items(call, output),
    carried('{"role":"tool","tool_call_id":"call_1","content":"Rain"}'),
    carried('{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"Rain"}]}'),
    carried('"functionResponse":{"id":"call_1","name":"look","response":{"result":"Rain"}}'),
  ),
  custom_tool_call: row(
    items(custom, customOutput),
    carried('"function":{"name":"script","arguments":"{\\"input\\":\\"print(1)\\"}"}'),
    carried('"name":"script","input":{"input":"print(1)"}'),
    carried('"name":"script","args":{"input":"print(1)"}'),
  ),
  custom_tool_call_output: all(items(custom, customOutput), carried('one')),
  tool_search_call: all({ tools: [searching], ...items(search, searched) }, carried('tool_search')),
  tool_search_output: all({ tools: [searching], ...items(search, searched) }, carried('look')),
  reasoning: all(
    items({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'of another' }, { role: 'assistant', content: 'Said.' }),
    carried('Said.', 'input.reasoning.encrypted_content'),
  ),
  item_reference: all(items({ type: 'item_reference', id: 'msg_1' }), refused('stored item')),
  additional_tools: all(items({ type: 'additional_tools', role: 'developer', tools: [look] }), carried('look')),
  apply_patch_call: foreign('apply_patch_call'),
  apply_patch_call_output: foreign('apply_patch_call_output'),
  code_interpreter_call: foreign('code_interpreter_call'),
  compaction: foreign('compaction'),
  compaction_trigger: foreign('compaction_trigger'),
  computer_call: foreign('computer_call'),
  computer_call_output: foreign('computer_call_output'),
  configuration_update: foreign('configuration_update'),
  file_search_call: foreign('file_search_call'),
  image_generation_call: foreign('image_generation_call'),
  local_shell_call: foreign('local_shell_call'),
  local_shell_call_output: foreign('local_shell_call_output'),
  mcp_approval_request: foreign('mcp_approval_request'),
  mcp_approval_response: foreign('mcp_approval_response'),
  mcp_call: foreign('mcp_call'),
  mcp_list_tools: foreign('mcp_list_tools'),
  program: foreign('program'),
  program_output: foreign('program_output'),
  shell_call: foreign('shell_call'),
  shell_call_output: foreign('shell_call_output'),
  web_search_call: foreign('web_search_call'),
} as const satisfies Record<NonNullable<ResponseInputItem['type']>, Row<Target>>

const refusedTool = (type: string): Row<Target> => all({ tools: [{ type }] }, refused(`"${type}"`))

export const responsesTools = {
  function: all({ tools: [look] }, carried('look')),
  custom: all({ tools: [{ type: 'custom', name: 'script', description: 'Runs it.' }] }, carried('script')),
  namespace: all({ tools: [{ type: 'namespace', name: 'far', description: 'Far ones.', tools: [look] }] }, carried('far__look')),
  tool_search: all({ tools: [searching] }, carried('tool_search')),
  apply_patch: refusedTool('apply_patch'),
  code_interpreter: refusedTool('code_interpreter'),
  computer: refusedTool('computer'),
  computer_use_preview: refusedTool('computer_use_preview'),
  file_search: refusedTool('file_search'),
  image_generation: refusedTool('image_generation'),
  local_shell: refusedTool('local_shell'),
  mcp: refusedTool('mcp'),
  programmatic_tool_calling: refusedTool('programmatic_tool_calling'),
  shell: refusedTool('shell'),
  web_search: refusedTool('web_search'),
  web_search_2025_08_26: refusedTool('web_search_2025_08_26'),
  web_search_preview: refusedTool('web_search_preview'),
  web_search_preview_2025_03_11: refusedTool('web_search_preview_2025_03_11'),
} as const satisfies Record<Tool['type'], Row<Target>>

export const responsesParts = {
  input_text: all(asked({ type: 'input_text', text: 'Some text' }), carried('Some text')),
  input_image: row(
    asked({ type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' }),
    carried('"image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}'),
    carried('"data":"iVBORw0KGgo="', 'input.content.detail'),
    carried('"data":"iVBORw0KGgo="', 'input.content.detail'),
  ),
  input_file: all(asked({ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }), carried('JVBERi0=')),
} as const satisfies Record<ResponseInputContent['type'], Row<Target>>

/** Fields of a call. */
export const callFields = {
  type: all(items(call, output), carried('look')),
  arguments: all(items(call, output), carried('Pune')),
  call_id: all(items(call, output), carried('call_1')),
  name: all(items(call, output), carried('look')),
  id: all(items({ ...call, id: 'fc_1' }, output), carried('look')),
  status: all(items({ ...call, status: 'completed' }, output), carried('look')),
  namespace: all(items({ ...call, namespace: 'far' }, output), carried('far__look')),
  async: all(items({ ...call, async: true }, output), carried('look', 'input.async')),
  caller: all(items({ ...call, caller: { type: 'program', caller_id: 'x' } }, output), carried('look', 'input.caller')),
} as const satisfies Record<keyof ResponseFunctionToolCall, Row<Target>>

/** Fields of a function tool. */
export const functionFields = {
  type: all({ tools: [look] }, carried('look')),
  name: all({ tools: [look] }, carried('look')),
  parameters: all({ tools: [look] }, carried('"at"')),
  strict: row({ tools: [{ ...look, strict: true }] }, carried('"strict":true'), carried('"strict":true'), carried('look', 'tools.strict')),
  description: all({ tools: [{ ...look, description: 'Looks around.' }] }, carried('Looks around.')),
  allowed_callers: all({ tools: [{ ...look, allowed_callers: ['programmatic'] }] }, carried('look', 'tools.allowed_callers')),
  async: all({ tools: [{ ...look, async: true }] }, carried('look', 'tools.async')),
  defer_loading: all({ tools: [{ ...look, defer_loading: true }] }, carried('look', 'tools.defer_loading')),
  output_schema: all({ tools: [{ ...look, output_schema: { type: 'object' } }] }, carried('look', 'tools.output_schema')),
} as const satisfies Record<keyof FunctionTool, Row<Target>>

/** Other contents of items. */
export const otherResponsesItems = {
  'the phase of a message': all(items({ role: 'assistant', content: 'Said.', phase: 'commentary' }), carried('Said.', 'input.phase')),
  'an image of a stored file': all(asked({ type: 'input_image', file_id: 'file_1' }), refused('file_id')),
  'a breakpoint of the cache': all(
    asked({ type: 'input_text', text: 'Some text', prompt_cache_breakpoint: { mode: 'x' } }),
    carried('Some text', 'input.content.prompt_cache_breakpoint'),
  ),
  'annotations of an earlier answer': all(
    items({ role: 'assistant', content: [{ type: 'output_text', text: 'Said.', annotations: [{ type: 'url_citation' }] }] }),
    carried('Said.', 'input.content.annotations'),
  ),
  'an earlier answer as it came': all(
    items({
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Said.', annotations: [], logprobs: [] }],
    }),
    carried('Said.'),
  ),
  'a call without an output': all(items(call), refused('without its output')),
  'an output without a call': all(items(output), refused('call_id')),
} as const satisfies Record<string, Row<Target>>
