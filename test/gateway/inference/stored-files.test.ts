/**
 * On the platform key, a file that is stored at a provider may belong to someone else, so it is refused in every format. On the caller's own key it is
 * accepted.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const own = { upstream_key: 'sk-my-own-key-0001' }
const pdf = `data:application/pdf;base64,${Buffer.from('%PDF-1.4 gs://in/the/text').toString('base64')}`
const png = 'data:image/png;base64,iVBORw0KGgo='
const user = (...content: readonly object[]) => [{ role: 'user', content }]

describe('stored files', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ dialects: true })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.others.claude, app.others.gem, app.others.resp]) upstream.reset()
  })
  const chat = (model: string, messages: readonly object[], more: object = {}) => app.call('POST', '/v1/chat/completions', { model, messages, ...more })
  const servers = () => [app.alpha, app.others.claude, app.others.gem, app.others.resp]
  const dialed = (): number => servers().reduce((count, { requests }) => count + requests.length, 0)

  const addresses = [
    'gs://their-bucket/secret.pdf',
    'GS://their-bucket/secret.png',
    ' g\ts://their-bucket/secret.png',
    'oss://their-bucket/secret.png',
    'ms://file-1',
    'https://generativelanguage.googleapis.com/v1beta/files/abc',
    'HTTPS://GenerativeLanguage.GoogleAPIs.com.:443/v1beta/files/abc',
    'https:\\\\generativelanguage.googleapis.com\\v1beta\\files\\abc',
    'https://x@generativelanguage.googleapis.com/v1beta/files/abc',
    'https://generativelanguage%2egoogleapis.com/v1beta/files/abc',
    `https://${'a'.repeat(2000)}@generativelanguage.googleapis.com/v1beta/files/abc`,
    'https://us-central1-aiplatform.googleapis.com/v1/files/abc',
    'https://api.openai.com/v1/files/file-1/content',
  ]
  const partsOf = (address: string): readonly [string, object][] => [
    ['image_url.url', { type: 'image_url', image_url: { url: address } }],
    ['image_url', { type: 'image_url', image_url: address }],
    ['file.file_url', { type: 'file', file: { filename: 'a.pdf', file_url: address } }],
    ['file.file_data', { type: 'file', file: { file_data: address } }],
    ['video_url.url', { type: 'video_url', video_url: { url: address } }],
  ]

  test("HARD-07 in every dialect, an address that only the key's account can open is refused with the name of its field", async () => {
    for (const model of ['gemini-model', 'openai-model', 'anthropic-model', 'responses-model'])
      for (const address of addresses)
        for (const [field, part] of partsOf(address)) {
          const reply = await chat(model, user({ type: 'text', text: 'What is it?' }, part))
          const name = JSON.stringify([model, part]).slice(0, 200)
          expect([name, reply.status, reply.json.error?.code]).toEqual([name, 400, 'bad_request'])
          expect(reply.json.error.message, name).toContain(`"messages[0].content[1].${field}" names something that is stored at the provider`)
        }
    expect(dialed()).toBe(0)
  })

  test('HARD-07 an address at the host of the called provider counts as its file store', async () => {
    const address = `${app.others.gem.url}/v1beta/files/abc`
    expect((await chat('gemini-model', user({ type: 'image_url', image_url: { url: address } }))).status).toBe(400)
    expect(dialed()).toBe(0)
  })

  test("HARD-07 on the caller's own key, addresses of stored files reach Gemini unchanged", async () => {
    for (const address of ['gs://our-bucket/our.pdf', 'https://generativelanguage.googleapis.com/v1beta/files/abc']) {
      const reply = await chat('gemini-model', user({ type: 'file', file: { file_url: address } }), own)
      expect(reply.status, reply.text).toBe(200)
      expect(JSON.stringify(app.others.gem.requests.at(-1)?.json)).toContain(JSON.stringify(address))
    }
  })

  test('HARD-07 documents and pictures as data or by a public address are sent on the platform key', async () => {
    const data = user({ type: 'file', file: { filename: 'a.pdf', file_data: pdf } }, { type: 'image_url', image_url: { url: png } })
    for (const model of ['gemini-model', 'openai-model', 'anthropic-model', 'responses-model']) expect((await chat(model, data)).status, model).toBe(200)
    const linked = user(
      { type: 'text', text: 'gs://a/b and https://api.openai.com/v1/files/file-1 are text' },
      { type: 'image_url', image_url: { url: 'https://example.com/generativelanguage.googleapis.com/a.png' } },
    )
    for (const model of ['gemini-model', 'openai-model', 'anthropic-model', 'responses-model']) expect((await chat(model, linked)).status, model).toBe(200)
    expect(JSON.stringify(app.others.gem.requests.at(-1)?.json)).toContain('https://example.com/generativelanguage.googleapis.com/a.png')
  })

  test('HARD-07 stored files of Anthropic are refused in every place, also in its own format', async () => {
    const ask = (content: readonly object[], more: object = {}) =>
      app.call('POST', '/v1/messages', { model: 'anthropic-model', max_tokens: 9, messages: user(...content), ...more })
    const file = { type: 'file', file_id: 'file_1' }
    const refused: readonly [string, object][] = [
      ['source.file_id', { type: 'document', source: file }],
      ['source.type', { type: 'image', source: { type: 'file', id: 'file_1' } }],
      ['source.url', { type: 'document', source: { type: 'url', url: 'https://api.anthropic.com/v1/files/file_1/content' } }],
      ['source.content[0].source.file_id', { type: 'document', source: { type: 'content', content: [{ type: 'image', source: file }] } }],
      ['content[0].source.file_id', { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: file }] }],
      ['file_id', { type: 'container_upload', file_id: 'file_1' }],
    ]
    for (const [field, part] of refused) {
      const reply = await ask([part])
      expect([field, reply.status, reply.json.error?.type]).toEqual([field, 400, 'invalid_request_error'])
      expect(reply.json.error.message).toContain(`"messages[0].content[0].${field}"`)
      expect((await ask([part], own)).status, field).toBe(200)
    }
    const passing: readonly object[] = [
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf.slice(pdf.indexOf(',') + 1) } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'gs://is a text here' } },
      { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } },
    ]
    for (const part of passing) expect((await ask([part])).status, JSON.stringify(part)).toBe(200)
  })

  test('HARD-07 in the responses format, stored files are refused by their address on the platform key, and by their id on every key', async () => {
    const ask = (content: readonly object[], more: object = {}) =>
      app.call('POST', '/v1/responses', { model: 'responses-model', input: user(...content), ...more })
    for (const [field, part] of [
      ['file_url', { type: 'input_file', file_url: 'https://api.openai.com/v1/files/file-1/content' }],
      ['image_url', { type: 'input_image', image_url: 'gs://their-bucket/a.png' }],
    ] as const) {
      const reply = await ask([part])
      expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringContaining(`"input[0].content[0].${field}"`)])
      expect((await ask([part], own)).status).toBe(200)
    }
    expect((await ask([{ type: 'input_file', file_id: 'file-1' }])).status).toBe(400)
    expect((await ask([{ type: 'input_file', filename: 'a.pdf', file_data: pdf }])).status).toBe(200)
  })

  test('HARD-07 a reference without a type is refused, and so is a picture of an earlier turn without its bytes', async () => {
    const ask = (item: object, more: object = {}) => app.call('POST', '/v1/responses', { model: 'responses-model', input: [item], ...more })
    for (const item of [{ id: 'msg_1' }, { type: null, id: 'msg_1' }, { type: 'item_reference', id: 'msg_1' }])
      for (const more of [{}, own]) {
        const reply = await ask(item, more)
        expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringContaining('"input[0]" refers to a stored item')])
      }
    const picture = { type: 'image_generation_call', id: 'ig_1' }
    for (const item of [picture, { ...picture, result: null }]) {
      const reply = await ask(item)
      expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringContaining('"input[0].id" names something that is stored at the provider')])
    }
    expect(dialed()).toBe(0)
    expect((await ask(picture, own)).status).toBe(200)
    expect((await ask({ ...picture, result: 'iVBORw0KGgo=' })).status).toBe(200)
    expect((await ask({ role: 'user', content: 'hello' })).status).toBe(200)
  })
})
