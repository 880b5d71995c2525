import { describe, expect, it } from 'vitest'
import { plainReplyOf } from '../../../src/gateway/inference/attempt/plain-reply.ts'
import { answersInChat } from '../../../src/gateway/providers/dialects/answers.ts'
import { errorOfChoices } from '../../../src/gateway/wire/chat/chat-choice-error.ts'
import { nameReasoning } from '../../../src/gateway/wire/chat/chat-reply.ts'
import { usageFromOpenAi } from '../../../src/gateway/wire/usage.ts'

const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12, prompt_tokens_details: { cached_tokens: 4 } }
const choice = {
  index: 0,
  message: { role: 'assistant', content: 'He said "hé".\n\\u', refusal: null, annotations: [] },
  logprobs: null,
  finish_reason: 'stop',
}
const ordinary = { id: 'chatcmpl-1', object: 'chat.completion', created: 1_760_000_000, model: 'm"1', choices: [choice], usage, service_tier: 'default' }

const read = (text: string) => plainReplyOf(Buffer.from(text))

/** Whether the parser finds a reply that passes unchanged. */
function passesUnchanged(text: string): boolean {
  let value: Record<string, unknown>
  try {
    value = JSON.parse(text) as Record<string, unknown>
  } catch {
    return false
  }
  return answersInChat('chat', value) && errorOfChoices(value['choices']) === null && (value['error'] ?? null) === null && nameReasoning(value) === null
}

describe('whole chat replies that are not parsed', () => {
  it('reads model, usage and the place of the model as the parser does, with any white space', () => {
    for (const text of [JSON.stringify(ordinary), JSON.stringify(ordinary, null, 2), ` \n${JSON.stringify(ordinary, null, '\t')}\r\n`]) {
      const facts = read(text)
      expect(facts).toMatchObject({ model: ordinary.model, usage: usageFromOpenAi(usage) })
      expect(Buffer.from(text).toString('utf8', facts?.modelFrom, facts?.modelTo)).toBe(JSON.stringify(ordinary.model))
    }
  })

  it('leaves every reply to the parser that is not ordinary', () => {
    const message = choice.message
    const others: readonly unknown[] = [
      [],
      {},
      { ...ordinary, choices: [] },
      { ...ordinary, error: { message: 'no' } },
      { ...ordinary, choices: [{ ...choice, finish_reason: 'error' }] },
      { ...ordinary, choices: [{ ...choice, error: { message: 'no' } }] },
      { ...ordinary, choices: [{ index: 0, finish_reason: 'stop' }] },
      { ...ordinary, choices: [{ ...choice, message: { ...message, reasoning_content: 'thought' } }] },
      { ...ordinary, choices: [{ ...choice, message: { ...message, reasoning: null } }] },
      { ...ordinary, choices: [{ ...choice, message: { ...message, content: null, tool_calls: [] } }] },
      { ...ordinary, choices: [{ ...choice, message: { ...message, content: [{ type: 'text', text: 'a' }] } }] },
      { ...ordinary, usage: null },
      { ...ordinary, usage: { prompt_tokens: 9, completion_tokens: 3 } },
      { ...ordinary, usage: { ...usage, prompt_tokens: -1 } },
      { ...ordinary, model: 7 },
      { ...ordinary, vendor: 'x' },
    ]
    for (const other of others) expect(read(JSON.stringify(other)), JSON.stringify(other)).toBeNull()
    const text = JSON.stringify(ordinary)
    const spoilt = [
      text.slice(0, -1),
      `${text}x`,
      text.replace('"id"', '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"id"'),
      text.replace('\\n', '\n'),
      text.replace('\\n', '\\x'),
      text.replace('1760000000', '01760000000'),
      text.replace('"stop"', '"stop",'),
    ]
    for (const each of spoilt) expect(read(each), each).toBeNull()
  })

  it('agrees with the parser on 20,000 replies with random changes', () => {
    const words = [
      '"',
      '\\',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '0',
      '-',
      'e',
      'null',
      'true',
      '"error":1,',
      '"id":"",',
      '\n',
      ' ',
      '\u0001',
      '"reasoning":"x",',
      '1.5',
    ]
    const base = JSON.stringify(ordinary)
    let seed = 1
    const random = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
      return Math.floor((seed / 2 ** 32) * below)
    }
    let plain = 0
    for (let round = 0; round < 20_000; round++) {
      const at = random(base.length)
      const text = base.slice(0, at) + words[random(words.length)] + base.slice(at + random(3))
      const facts = read(text)
      if (facts === null) continue
      plain++
      expect(passesUnchanged(text), text).toBe(true)
      const value = JSON.parse(text) as Record<string, unknown>
      expect(facts.model, text).toBe(value['model'])
      expect(facts.usage, text).toEqual(usageFromOpenAi(value['usage']))
    }
    expect(plain).toBeGreaterThan(500)
  })
})
