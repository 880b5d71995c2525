import { expect, test } from 'vitest'
import { CollectedReply } from '../../../src/gateway/inference/replies/reply-shapes.ts'

test('HARD-03 when a stream becomes a whole reply, only known and short fields of its first chunk are kept', () => {
  const collected = new CollectedReply()
  const heavy = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`field_${index}`, { deep: [1, 2, 3] }]))
  const choices = [{ delta: { content: 'Hello' }, finish_reason: 'stop' }]
  collected.add([
    { kind: 'chunk', chunk: { ...heavy, id: 'x'.repeat(5000), model: { name: 'm' }, created: 7, choices } },
    { kind: 'chunk', chunk: { ...heavy, id: 'chat-1', model: 'm', created: 8, choices: [] } },
    { kind: 'done' },
  ])
  const reply = collected.reply ?? {}
  expect(Object.keys(reply).sort()).toEqual(['choices', 'created', 'id', 'model', 'object'])
  expect([reply['id'], reply['model'], reply['created']]).toEqual(['chat-1', 'm', 7])
})
