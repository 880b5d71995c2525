/** Every type of message, content part, tool and tool choice of OpenAI chat completions, and the fields of the types that are carried. */
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionContentPartRefusal,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions'
import { chatTargets } from './chat-fields.ts'
import { carried, everywhere, type Fate, met, type Row, refused } from './fate.ts'

type Target = (typeof chatTargets)[number]
type Part = Readonly<Record<string, unknown>>

const row = (body: Row<Target>['body'], anthropic: Fate, gemini: Fate, responses: Fate): Row<Target> => ({
  body,
  fate: { anthropic, gemini, 'openai-responses': responses },
})
const all = (body: Row<Target>['body'], fate: Fate): Row<Target> => everywhere(chatTargets, body, fate)

const asked = (...content: readonly Part[]): Row<Target>['body'] => ({ messages: [{ role: 'user', content }] })
const said = (message: Part): Row<Target>['body'] => ({
  messages: [
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: 'Said.', ...message },
    { role: 'user', content: 'More.' },
  ],
})
const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"Pune"}' } }
const called = (made: Part, ...results: readonly Part[]): Row<Target>['body'] => ({
  messages: [{ role: 'user', content: 'Go on.' }, { role: 'assistant', content: null, ...made }, ...results],
})
const result = { role: 'tool', tool_call_id: 'call_1', content: 'Rain' }
const text = { type: 'text', text: 'Some text' }
const url = 'data:image/png;base64,iVBORw0KGgo='
const look = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } } }

export const chatMessages = {
  system: row(
    {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
    },
    carried('"system":"Be brief."'),
    carried('"systemInstruction":{"parts":[{"text":"Be brief."}]}'),
    carried('{"role":"system","content":"Be brief."}'),
  ),
  developer: row(
    {
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
    },
    carried('"system":"Be brief."'),
    carried('"systemInstruction":{"parts":[{"text":"Be brief."}]}'),
    carried('{"role":"developer","content":"Be brief."}'),
  ),
  user: all({ messages: [{ role: 'user', content: 'Where is Pune?' }] }, carried('Where is Pune?')),
  assistant: all(said({}), carried('Said.')),
  tool: row(
    called({ tool_calls: [call] }, result),
    carried('{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"Rain"}]}'),
    carried('"functionResponse":{"id":"call_1","name":"look","response":{"result":"Rain"}}'),
    carried('{"type":"function_call_output","call_id":"call_1","output":"Rain"}'),
  ),
  function: row(
    called({ function_call: { name: 'look', arguments: '{"at":"Pune"}' } }, { role: 'function', name: 'look', content: 'Rain' }),
    carried(
      '{"type":"tool_use","id":"call_1_look","name":"look","input":{"at":"Pune"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_look","content":[{"type":"text","text":"Rain"}]}]}',
    ),
    carried(
      '"functionCall":{"id":"call_1_look","name":"look","args":{"at":"Pune"}}}]},{"role":"user","parts":[{"functionResponse":{"id":"call_1_look","name":"look","response":{"result":"Rain"}}}]}',
    ),
    carried(
      '{"type":"function_call","call_id":"call_1_look","name":"look","arguments":"{\\"at\\":\\"Pune\\"}"},{"type":"function_call_output","call_id":"call_1_look","output":"Rain"}',
    ),
  ),
} as const satisfies Record<ChatCompletionMessageParam['role'], Row<Target>>

/** Fields of an assistant's message. */
export const assistantFields = {
  role: all(said({}), carried('Said.')),
  content: all(said({ content: [text] }), carried('Some text')),
  audio: all(said({ audio: { id: 'audio_1' } }), carried('Said.', 'messages.audio')),
  function_call: all(called({ function_call: { name: 'look', arguments: '{}' } }, { role: 'function', name: 'look', content: 'Rain' }), carried('Rain')),
  name: all(said({ name: 'Asha' }), carried('Said.', 'messages.name')),
  refusal: all(said({ content: null, refusal: 'I will not.' }), carried('I will not.')),
  tool_calls: row(
    called({ tool_calls: [call] }, result),
    carried('{"type":"tool_use","id":"call_1","name":"look","input":{"at":"Pune"}}'),
    carried('"functionCall":{"id":"call_1","name":"look","args":{"at":"Pune"}}'),
    carried('{"type":"function_call","call_id":"call_1","name":"look","arguments":"{\\"at\\":\\"Pune\\"}"}'),
  ),
} as const satisfies Record<keyof ChatCompletionAssistantMessageParam, Row<Target>>

export const chatParts = {
  text: all(asked(text), carried('Some text')),
  image_url: row(
    asked({ type: 'image_url', image_url: { url } }, text),
    carried('"source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}'),
    carried('"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}'),
    carried(`"type":"input_image","image_url":"${url}"`),
  ),
  input_audio: row(
    asked({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, text),
    carried('Some text', 'input_audio'),
    carried('"inlineData":{"mimeType":"audio/wav","data":"AAAA"}'),
    carried('"input_audio":{"data":"AAAA","format":"wav"}'),
  ),
  file: row(
    asked({ type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }, text),
    carried('"source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"'),
    carried('"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}'),
    carried('"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="'),
  ),
  refusal: all(said({ content: [{ type: 'refusal', refusal: 'I will not.' }] }), carried('I will not.')),
} as const satisfies Record<ChatCompletionContentPart['type'] | ChatCompletionContentPartRefusal['type'], Row<Target>>

export const chatTools = {
  function: row(
    { tools: [look] },
    carried('"tools":[{"name":"look"'),
    carried('"functionDeclarations":[{"name":"look"'),
    carried('"tools":[{"type":"function","name":"look"'),
  ),
  custom: row(
    { tools: [{ type: 'custom', custom: { name: 'script' } }] },
    carried('Hello there', 'tools.custom'),
    carried('Hello there', 'tools.custom'),
    carried('{"type":"custom","name":"script"}'),
  ),
} as const satisfies Record<ChatCompletionTool['type'], Row<Target>>

/** Fields of parts, and parts that clients send although the SDK does not have them. */
export const otherChatParts = {
  'detail of an image': row(
    asked({ type: 'image_url', image_url: { url, detail: 'low' } }, text),
    carried('iVBORw0KGgo=', 'messages.content.image_url.detail'),
    carried('iVBORw0KGgo=', 'messages.content.image_url.detail'),
    carried('"detail":"low"'),
  ),
  'detail auto': all(asked({ type: 'image_url', image_url: { url, detail: 'auto' } }, text), carried('iVBORw0KGgo=')),
  'breakpoint of the cache': row(
    asked({ ...text, prompt_cache_breakpoint: { mode: 'x' } }),
    carried('Some text', 'messages.content.prompt_cache_breakpoint'),
    carried('Some text', 'messages.content.prompt_cache_breakpoint'),
    carried('"prompt_cache_breakpoint":{"mode":"x"}'),
  ),
  'mark for the cache': row(
    asked({ ...text, cache_control: { type: 'ephemeral' } }),
    carried('"text":"Some text","cache_control":{"type":"ephemeral"}'),
    carried('Some text', 'cache_control'),
    carried('Some text', 'cache_control'),
  ),
  'mark for the cache on a tool': row(
    { tools: [{ ...look, cache_control: { type: 'ephemeral' } }] },
    carried('"cache_control":{"type":"ephemeral"}'),
    carried('look', 'cache_control'),
    carried('look', 'cache_control'),
  ),
  'file that is stored elsewhere': row(asked({ type: 'file', file: { file_id: 'file_1' } }, text), refused('file_id'), refused('file_id'), refused('file_id')),
  'part of an unknown type': all(asked({ type: 'hologram', hologram: 'x' }, text), carried('Some text', 'messages.content.hologram')),
  'name of a participant': all({ messages: [{ role: 'user', content: 'Hello there', name: 'Asha' }] }, carried('Hello there', 'messages.name')),
  'name of a tool beside its result': all(called({ tool_calls: [call] }, { ...result, name: 'look' }), carried('Rain')),
  'thinking without a signature': all(said({ reasoning_content: 'hmm' }), carried('Said.', 'messages.reasoning_content')),
  'thinking with a signature of Claude': row(
    said({ reasoning_content: 'hmm', thinking_blocks: [{ type: 'thinking', thinking: 'hmm', signature: 'c2ln' }] }),
    carried('{"type":"thinking","thinking":"hmm","signature":"c2ln"}'),
    carried('Said.', 'messages.thinking_blocks'),
    carried('Said.', 'messages.thinking_blocks'),
  ),
  'fields that an assistant message of a reply has': all(said({ refusal: null, audio: null, annotations: [], function_call: null }), carried('Said.')),
  'a strict function': row(
    { tools: [{ type: 'function', function: { ...look.function, strict: true } }] },
    carried('"strict":true'),
    carried('look', 'tools.strict'),
    carried('"strict":true'),
  ),
  'a call of a custom tool': row(
    called({ tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'script', input: 'print(1)' } }] }, result),
    carried('{"type":"tool_use","id":"call_1","name":"script","input":{"input":"print(1)"}}'),
    carried('"functionCall":{"id":"call_1","name":"script","args":{"input":"print(1)"}}'),
    carried('{"type":"custom_tool_call","call_id":"call_1","name":"script","input":"print(1)"}'),
  ),
  'a call without a result': row(
    called({ tool_calls: [call] }, { role: 'user', content: 'Never mind.' }),
    carried('"tool_use_id":"call_1","is_error":true,"content":"There is no result of this call."'),
    carried('"functionResponse":{"id":"call_1","name":"look","response":{"error":"There is no result of this call."}}'),
    carried('{"type":"function_call_output","call_id":"call_1","output":"There is no result of this call."}'),
  ),
  'a result without a call': all(
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'tool', tool_call_id: 'call_9', content: 'b' },
      ],
    },
    refused('"messages[1].tool_call_id"'),
  ),
  'allowed tools': row(
    { tools: [look], tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [look] } } },
    carried('look', 'tool_choice'),
    carried('look', 'tool_choice'),
    carried('"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"}]}'),
  ),
  'a choice without tools': all({ tool_choice: 'auto' }, met('there is nothing to choose from')),
  'a demand without tools': all({ tool_choice: 'required' }, carried('Hello there', 'tool_choice')),
} as const satisfies Record<string, Row<Target>>
