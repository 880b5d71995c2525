import { expect, test } from 'vitest'
import type { ReplyContext } from '../../../../src/gateway/wire/client-format.ts'
import { BlockWriter } from '../../../../src/gateway/wire/messages/reply/block-writer.ts'

const context: ReplyContext = {
  model: 'm',
  request: {},
  promptTokens: 5,
  nowSeconds: 0,
  newId: prefix => `${prefix}new`,
  bill: () => ({ cost_inr: 0, value_inr: 0, provider: 'p' }),
}

/** Each event as one short word. */
function said(text: string): string[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json = '']) => {
    const { type, index, content_block: block, delta } = JSON.parse(json)
    if (type === 'content_block_start') return `${index}[${block.type}`
    if (type === 'content_block_stop') return `${index}]`
    return `${index} ${delta.text ?? delta.thinking ?? delta.signature ?? delta.partial_json}`
  })
}

const call = (index: number, args: string, name?: string) => ({
  index,
  ...(name === undefined ? {} : { id: `call_${index}` }),
  function: { ...(name === undefined ? {} : { name }), arguments: args },
})

test('case 60 thinking that was sent is not repeated when its signature comes', () => {
  const writer = new BlockWriter(context)
  const text =
    writer.thinking('one ') +
    writer.thinking('two') +
    writer.thinkingBlock({ type: 'thinking', thinking: 'one two three', signature: 'sig' }) +
    writer.text('x') +
    writer.close()
  expect(said(text)).toEqual(['0[thinking', '0 one ', '0 two', '0  three', '0 sig', '0]', '1[text', '1 x', '1]'])
})

test('case 60 a signature without text and redacted thinking get their own blocks', () => {
  const writer = new BlockWriter(context)
  const text =
    writer.thinkingBlock({ type: 'thinking', thinking: '', signature: 'sig' }) +
    writer.thinkingBlock({ type: 'redacted_thinking', data: 'eHg=' }) +
    writer.close()
  expect(said(text)).toEqual(['0[thinking', '0 sig', '0]', '1[redacted_thinking', '1]'])
})

test('case 54 text between two pieces of arguments waits for their end, and nothing is lost', () => {
  const writer = new BlockWriter(context)
  const text =
    writer.toolCall(call(0, '{"a"', 'f')) +
    writer.text('hi') +
    writer.toolCall(call(1, '{', 'g')) +
    writer.toolCall(call(0, ':1}')) +
    writer.toolCall(call(1, '}')) +
    writer.close()
  expect(said(text)).toEqual(['0[tool_use', '0 {"a"', '0 :1}', '0]', '1[tool_use', '1 {', '1 }', '1]', '2[text', '2 hi', '2]'])
})

test('case 58 a call without arguments has no delta and is closed before the next call', () => {
  const writer = new BlockWriter(context)
  expect(said(writer.toolCall(call(0, '', 'f')) + writer.toolCall(call(1, '{}', 'g')) + writer.close())).toEqual([
    '0[tool_use',
    '0]',
    '1[tool_use',
    '1 {}',
    '1]',
  ])
})
