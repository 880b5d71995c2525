/** Every type of block of Anthropic messages, including beta types, and the fields of the types that are carried. */
import type { BetaContentBlockParam } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { ContentBlockParam, ToolResultBlockParam } from '@anthropic-ai/sdk/resources/messages/messages'
import { carried, everywhere, type Fate, met, type Row, refused } from './fate.ts'
import { messagesTargets } from './messages-fields.ts'

type Target = (typeof messagesTargets)[number]
type Block = Readonly<Record<string, unknown>>

const row = (body: Row<Target>['body'], openai: Fate, gemini: Fate, responses: Fate): Row<Target> => ({
  body,
  fate: { openai, gemini, 'openai-responses': responses },
})
const all = (body: Row<Target>['body'], fate: Fate): Row<Target> => everywhere(messagesTargets, body, fate)

const asked = (...content: readonly Block[]): Row<Target>['body'] => ({ messages: [{ role: 'user', content }] })
const said = (...content: readonly Block[]): Row<Target>['body'] => ({
  messages: [
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: [...content, { type: 'text', text: 'Said.' }] },
    { role: 'user', content: 'More.' },
  ],
})
const used = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'Pune' } }
const answered = (result: Block, use: Block = used): Row<Target>['body'] => ({
  messages: [
    { role: 'user', content: 'Go on.' },
    { role: 'assistant', content: [use] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', ...result }] },
  ],
})

const cache_control = { type: 'ephemeral' }
const text = { type: 'text', text: 'Some text' }
const png = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
const image = { type: 'image', source: png }
const pdf = { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } }
const found = { type: 'search_result', source: 'https://example.test/a', title: 'About', content: [text] }
const foreign = (type: string, more: Block = {}): Row<Target> => all(said({ type, ...more }), carried('Said.', `messages.${type}`))

type BlockType = ContentBlockParam['type'] | BetaContentBlockParam['type'] | Exclude<NonNullable<ToolResultBlockParam['content']>, string>[number]['type']

export const messagesBlocks = {
  text: all(asked(text), carried('Some text')),
  image: row(
    asked(image, text),
    carried('"image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}'),
    carried('"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}'),
    carried('"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="'),
  ),
  document: row(
    asked(pdf, text),
    carried('"file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}'),
    carried('"inlineData":{"mimeType":"application/pdf","data":"JVBERi0="}'),
    carried('"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="'),
  ),
  search_result: all(asked(found, text), carried('About\\nhttps://example.test/a\\nSome text')),
  thinking: all(said({ type: 'thinking', thinking: 'hmm', signature: 'c2ln' }), carried('Said.', 'messages.thinking')),
  redacted_thinking: all(said({ type: 'redacted_thinking', data: 'eHg=' }), carried('Said.', 'messages.thinking')),
  tool_use: row(
    answered({ content: 'Rain' }),
    carried('"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"look","arguments":"{\\"at\\":\\"Pune\\"}"}}]'),
    carried('"functionCall":{"id":"toolu_1","name":"look","args":{"at":"Pune"}}'),
    carried('{"type":"function_call","call_id":"toolu_1","name":"look","arguments":"{\\"at\\":\\"Pune\\"}"}'),
  ),
  tool_result: row(
    answered({ content: 'Rain', is_error: true }),
    carried('{"role":"tool","tool_call_id":"toolu_1","content":"Error: Rain"}'),
    carried('"functionResponse":{"id":"toolu_1","name":"look","response":{"result":"Error: Rain"}}'),
    carried('{"type":"function_call_output","call_id":"toolu_1","output":"Error: Rain"}'),
  ),
  tool_reference: all(answered({ content: [{ type: 'tool_reference', tool_name: 'far_tool' }] }), carried('far_tool')),
  browser_state: all(answered({ content: [{ type: 'browser_state', tabs: [] }] }), refused('"browser_state"')),
  container_upload: all(asked({ type: 'container_upload', file_id: 'file_1' }, text), refused('"container_upload"')),
  tool_addition: all(asked({ type: 'tool_addition' }, text), refused('"tool_addition"')),
  tool_removal: all(asked({ type: 'tool_removal' }, text), refused('"tool_removal"')),
  mcp_tool_listing: all(asked({ type: 'mcp_tool_listing' }, text), refused('"mcp_tool_listing"')),
  server_tool_use: foreign('server_tool_use', { id: 'srvtoolu_1', name: 'web_search', input: {} }),
  web_search_tool_result: foreign('web_search_tool_result'),
  web_fetch_tool_result: foreign('web_fetch_tool_result'),
  code_execution_tool_result: foreign('code_execution_tool_result'),
  bash_code_execution_tool_result: foreign('bash_code_execution_tool_result'),
  text_editor_code_execution_tool_result: foreign('text_editor_code_execution_tool_result'),
  tool_search_tool_result: foreign('tool_search_tool_result'),
  advisor_tool_result: foreign('advisor_tool_result'),
  mcp_tool_use: foreign('mcp_tool_use'),
  mcp_tool_result: foreign('mcp_tool_result'),
  compaction: foreign('compaction'),
  fallback: foreign('fallback'),
} as const satisfies Record<BlockType, Row<Target>>

/** Fields of blocks. */
export const messagesBlockFields = {
  'system text, cached': all({ system: [{ ...text, cache_control }] }, carried('Some text', 'cache_control')),
  'text, cached': all(asked({ ...text, cache_control }), carried('Some text', 'cache_control')),
  'text of the assistant, cached': all(said({ ...text, cache_control }), carried('Some text', 'cache_control')),
  'text with citations': all(said({ ...text, citations: [{ type: 'char_location' }] }), carried('Some text', 'citations')),
  'image by URL': row(
    asked({ type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } }, text),
    carried('"image_url":{"url":"https://example.test/a.png"}'),
    carried('"fileData":{"mimeType":"image/png","fileUri":"https://example.test/a.png"}'),
    carried('"type":"input_image","image_url":"https://example.test/a.png"'),
  ),
  'image of a stored file': all(asked({ type: 'image', source: { type: 'file', file_id: 'file_1' } }, text), refused('stored file')),
  'image, cached': all(asked({ ...image, cache_control }, text), carried('iVBORw0KGgo=', 'cache_control')),
  'image, transformed': all(asked({ ...image, transformations: { crop: {} } }, text), carried('iVBORw0KGgo=', 'messages.content.transformations')),
  'document as text': all(
    asked({ type: 'document', title: 'Notes', context: 'of today', source: { type: 'text', media_type: 'text/plain', data: 'remember' } }),
    carried('Notes\\nof today\\nremember'),
  ),
  'document by URL': row(
    asked({ type: 'document', source: { type: 'url', url: 'https://example.test/a.pdf' } }, text),
    refused('not by its URL'),
    carried('"fileUri":"https://example.test/a.pdf"'),
    carried('"file_url":"https://example.test/a.pdf"'),
  ),
  'document with citations': all(asked({ ...pdf, citations: { enabled: true } }, text), carried('JVBERi0=', 'citations')),
  'search result with citations': all(asked({ ...found, citations: { enabled: true } }, text), carried('About', 'citations')),
  'tool use, cached': all(answered({ content: 'Rain' }, { ...used, cache_control }), carried('Rain', 'cache_control')),
  'tool use by another caller': all(
    answered({ content: 'Rain' }, { ...used, caller: { type: 'code_execution_20260120' } }),
    carried('Rain', 'messages.content.caller'),
  ),
  'tool use by the model itself': all(answered({ content: 'Rain' }, { ...used, caller: { type: 'direct' } }), carried('Rain')),
  'tool result, cached': all(answered({ content: 'Rain', cache_control }), carried('Rain', 'cache_control')),
  'an image in a tool result': all(answered({ content: [image] }), carried('iVBORw0KGgo=')),
  'null fields': all(asked({ ...text, cache_control: null, citations: null }), met('nothing is said')),
  'a turn without content': all({ messages: [{ role: 'user', content: [] }] }, refused('"messages[0].content"')),
  'a message of an unknown field': all({ messages: [{ role: 'user', content: 'Hello there', mood: 'good' }] }, carried('Hello there', 'messages.mood')),
  'an unknown block': all(asked({ type: 'hologram' }), refused('"hologram"')),
  'a missing result': all(
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: [used] },
        { role: 'user', content: 'b' },
      ],
    },
    refused('toolu_1'),
  ),
} as const satisfies Record<string, Row<Target>>
