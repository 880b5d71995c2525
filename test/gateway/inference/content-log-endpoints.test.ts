/**
 * The content that an organisation with a retention window keeps from each inference endpoint: texts of both sides, but no recording, sound or credential.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import { picture } from '../../harness/pictures.ts'
import { wavOf } from '../../harness/wav.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    dialects: true,
    operatorFile: fileWithMedia,
  })
  await app.call('PUT', '/me/org/data-retention', { days: 3 }, { cookie: await app.signIn() })
})
afterAll(() => app.stop())

const keptOf = async (requestId: string | null) => {
  await app.gateway.app.contentLog.flush()
  return app.gateway.app.contentLog.read(app.orgId, requestId ?? '')
}
const key = { upstream_key: 'sk-never-kept-0001' }

async function json(path: string, body: object) {
  const reply = await app.call('POST', path, body)
  expect(reply.status, reply.text).toBe(200)
  return keptOf(reply.headers.get('x-request-id'))
}

async function form(path: string, fields: Record<string, string>, name: string, bytes: Buffer) {
  const sent = new FormData()
  for (const [field, value] of Object.entries(fields)) sent.append(field, value)
  sent.append(name, new Blob([new Uint8Array(bytes)]), 'named-by-its-owner.bin')
  const reply = await fetch(app.baseUrl + path, { method: 'POST', headers: { authorization: `Bearer ${app.key}` }, body: sent })
  expect(reply.status).toBe(200)
  await reply.arrayBuffer()
  return keptOf(reply.headers.get('x-request-id'))
}

test('the content log keeps the texts of request and reply, but no files, sound or credentials', async () => {
  const messages = [{ role: 'user', content: 'said to messages' }]
  const talk = await json('/v1/messages', { model: 'test-model', max_tokens: 9, messages, ...key })
  expect([talk?.request, talk?.reply]).toEqual([expect.stringContaining('said to messages'), expect.stringContaining('Hello from the test upstream')])
  const streamed = await json('/v1/messages', { model: 'anthropic-model', stream: true, max_tokens: 9, messages, ...key })
  expect(streamed?.reply).toContain('event: message_stop')
  const response = await json('/v1/responses', { model: 'test-model', input: 'said to responses', ...key })
  expect([response?.request, response?.reply]).toEqual([expect.stringContaining('said to responses'), expect.stringContaining('Hello from')])

  app.alpha.script([{ body: { created: 1, data: [{ url: 'https://pictures.example/1.png' }] } }])
  const drawn = await json('/v1/images/generations', { model: 'draw', prompt: 'a picture of a zebra', ...key })
  expect([drawn?.request, drawn?.reply]).toEqual([expect.stringContaining('zebra'), expect.stringContaining('pictures.example')])
  app.alpha.script([{ body: { created: 1, data: [{ url: 'https://pictures.example/2.png' }] } }])
  const edited = await form('/v1/images/edits', { model: 'draw', prompt: 'without the zebra', ...key }, 'image', await picture(8, 8))
  expect([edited?.request, edited?.reply]).toEqual([expect.stringContaining('without the zebra'), expect.stringContaining('pictures.example/2')])

  app.alpha.script([{ body: { text: 'what was heard', duration: 1 } }])
  const heard = await form('/v1/audio/transcriptions', { model: 'hear', prompt: 'names to expect', ...key }, 'file', wavOf(1))
  expect([heard?.request, heard?.reply]).toEqual([expect.stringContaining('names to expect'), expect.stringContaining('what was heard')])
  app.alpha.script([{ headers: { 'content-type': 'audio/mpeg' }, rawStream: ['sound of a voice'] }])
  const spoken = await json('/v1/audio/speech', { model: 'say', input: 'a text to speak', ...key })
  expect([spoken?.request, spoken?.reply]).toEqual([expect.stringContaining('a text to speak'), '[audio/mpeg]'])

  const all = JSON.stringify([talk, streamed, response, drawn, edited, heard, spoken])
  for (const never of [key.upstream_key, 'upstream_key', 'RIFF', 'PNG', 'named-by-its-owner', 'sound of a voice']) expect(all).not.toContain(never)
})
