/**
 * Work on a conversation with very many tool calls must take time in proportion to its length. With these sizes, quadratic work would not end within
 * the test.
 */
import { describe, expect, test } from 'vitest'
import { turnsOf } from '../../../src/gateway/providers/dialects/anthropic/anthropic-turns.ts'
import { dataUrlOf } from '../../../src/gateway/providers/dialects/data-url.ts'
import { contentsOf } from '../../../src/gateway/providers/dialects/gemini/gemini-contents.ts'
import { inputItems } from '../../../src/gateway/providers/dialects/openai-responses/responses-input.ts'
import { hubMessages } from '../../../src/gateway/wire/messages/request/hub-turns.ts'
import { toolNamesOf } from '../../../src/gateway/wire/messages/tool-names.ts'
import { readInput } from '../../../src/gateway/wire/responses/request/input-items.ts'
import { ToolNames } from '../../../src/gateway/wire/responses/tool-names.ts'

const many = 60_000
const list = <T>(length: number, make: (index: number) => T): T[] => Array.from({ length }, (_, index) => make(index))
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '' } })
const calling = (ids: readonly string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map(call) })
const result = (id: string, content: unknown = 'done') => ({ role: 'tool', tool_call_id: id, content })
const user = (text: string) => ({ role: 'user', content: text })
const dropped = new Set<string>()

const ids = list(many, index => `c${index}`)
/** One turn with all calls, one turn for each call, results after the user's text, and calls without results. */
const conversations = {
  'calls with one id': [calling(list(many, () => 'c'))],
  'results in the turn behind the calls': [calling(ids), ...ids.map(id => result(id))],
  'results behind many words': [calling(ids), ...list(many, () => user('a')), ...ids.map(id => result(id))],
  'results at the end of many turns': [...ids.flatMap(id => [calling([id]), user('a')]), ...ids.map(id => result(id))],
  'calls without results': ids.flatMap(id => [calling([id]), user('a')]),
}
const answersOf = (value: unknown): number => JSON.stringify(value).split(/tool_result|functionResponse"|function_call_output/).length - 1

describe('very many tool calls', () => {
  for (const [name, messages] of Object.entries(conversations)) {
    test(`HARD-01 very many tool calls are translated for Claude in linear time: ${name}`, { timeout: 20_000 }, () => {
      expect(answersOf(turnsOf(messages, dropped).turns)).toBe(many)
    })
    test(`HARD-01 very many tool calls are translated for Gemini in linear time: ${name}`, { timeout: 20_000 }, () => {
      expect(answersOf(contentsOf(messages, true, dropped).contents)).toBe(many)
    })
    test(`HARD-01 very many tool calls are translated for the Responses API in linear time: ${name}`, { timeout: 20_000 }, () => {
      expect(answersOf(inputItems(messages, dropped))).toBe(many)
    })
  }

  const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'done' })
  const callItem = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
  const inputs = {
    'calls with one id and their outputs': [...list(many, () => callItem('c')), ...list(many, () => output('c'))],
    'calls and their outputs': [...ids.map(callItem), ...ids.map(output)],
  }
  for (const [name, input] of Object.entries(inputs))
    test(`HARD-01 very many tool calls of a Responses request are read in linear time: ${name}`, { timeout: 20_000 }, () => {
      expect(readInput(input, null, ToolNames.of({})).messages.filter(({ role }) => role === 'tool')).toHaveLength(many)
    })

  test('HARD-01 very many user turns of a messages request, with only thinking between them, are read in linear time', { timeout: 20_000 }, () => {
    const thought = { role: 'assistant', content: [{ type: 'thinking', thinking: 'a', signature: 'b' }] }
    const context = { names: toolNamesOf({}), drop: () => {} }
    const [message, ...others] = hubMessages({ messages: list(many, () => [user('a'), thought]).flat() }, context)
    expect([message?.['content'], others]).toEqual([expect.objectContaining({ length: many }), []])
  })

  test('each call gets a unique id, whatever ids are given', () => {
    const given = ['a', 'a', 'a_2', 'a_2', 'a', 'a_3', 'a', 'b', '', '', '%', 'call', 'a_2_2']
    const [turn] = turnsOf([user('x'), calling(given)], dropped).turns.slice(1)
    const made = (turn?.content ?? []).map(block => block['id'])
    expect(made).toEqual(['a', 'a_2', 'a_2_2', 'a_2_3', 'a_3', 'a_3_2', 'a_4', 'b', 'call', 'call_2', '_', 'call_3', 'a_2_2_2'])
  })

  test('results begin the turn after their calls, in the order of the calls, and pictures of results come after them', () => {
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } }
    const messages = [user('x'), calling(['a', 'b', 'c']), user('y'), result('b', [{ type: 'text', text: 'of b' }, picture]), result('a', [picture])]
    const [, , behind] = turnsOf(messages, dropped).turns
    expect(behind?.content.map(block => block['tool_use_id'] ?? block['text'])).toEqual(['b', 'a', 'c', 'y'])
    const parts = contentsOf(messages, true, dropped).contents[2]?.parts ?? []
    expect(parts.map(part => (part['functionResponse'] as { id: string } | undefined)?.id ?? part['text'] ?? 'picture')).toEqual([
      'b',
      'a',
      'c',
      'picture',
      'picture',
      'y',
    ])
  })
})

describe('very long names', () => {
  const long = 'a.'.repeat(10_000_000)

  test('HARD-01 the id of a call is cut before it is changed, and a very long name of a tool is refused or cut before', { timeout: 20_000 }, () => {
    const { turns } = turnsOf([calling([long, `${long}b`]), result(long), result(`${long}b`)], dropped)
    const ids = turns.flatMap(({ content }) => content.flatMap(block => (block['type'] === 'tool_use' ? [String(block['id'])] : [])))
    expect(ids.map(id => id.length <= 300)).toEqual([true, true])
    expect(new Set(ids).size).toBe(2)
    expect(() => toolNamesOf({ tools: [{ name: long }] })).toThrow('longer than 1000 characters')
    expect(new ToolNames().hubName({ kind: 'function', namespace: null, name: long })).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
  })

  test('HARD-01 white space in the base64 of a data URL is removed in linear time', { timeout: 20_000 }, () => {
    expect(dataUrlOf(`data:image/png;base64,${'A \n'.repeat(8_000_000)}`)?.base64).toBe('A'.repeat(8_000_000))
    expect(dataUrlOf('data:image/png;base64,AAAA')?.base64).toBe('AAAA')
  })
})
