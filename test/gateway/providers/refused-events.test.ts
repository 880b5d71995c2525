import { describe, expect, test } from 'vitest'
import { dialectOf } from '../../../src/gateway/providers/dialects.ts'
import { refusedCode } from '../../../src/gateway/wire/chat/chat-stream.ts'

describe('an event that is longer than the gateway takes', () => {
  for (const id of ['openai', 'anthropic', 'gemini', 'openai-responses'] as const)
    test(`an event above the gateway's bound ends a translated stream with the code of that bound: ${id}`, () => {
      const decoder = dialectOf(id).decoder(1024)
      const events = decoder.push(Buffer.from(`data: {"x":"${'a'.repeat(2000)}"}\n\n`))
      expect(events).toMatchObject([{ kind: 'error', fault: { code: refusedCode } }])
    })
})
