/** Some providers charge a fee for reading a file in addition to the tokens. Calls on the platform key must not cause such fees. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { startUpstream, type UpstreamServer } from '../../harness/upstream-server.ts'

const pdf = Buffer.from('%PDF-1.4 a thousand pages').toString('base64')
const own = { upstream_key: 'sk-or-my-own-key-0001' }
const file = { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } }
const linked = { type: 'document_url', document_url: 'https://example.com/a.pdf' }
const asked = (...parts: readonly object[]) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'sum up' }, ...parts] }] })

describe('fees for files', () => {
  let app: TestApp
  let maker: UpstreamServer
  beforeAll(async () => {
    maker = await startUpstream()
    const env = { OPENROUTER_BASE_URL: maker.url, OPENROUTER_API_KEY: 'sk-or-x', MISTRAL_BASE_URL: maker.url, MISTRAL_API_KEY: 'm' }
    app = await startApp({
      env,
      operatorFile: urls => {
        const shipped = defaultOperatorFile(urls)
        const route = (provider: string, dialect: 'openai' | 'anthropic' = 'openai') => ({
          ...{ provider, dialect, upstream_model: 'some/model', input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' },
        })
        return {
          ...shipped,
          models: [
            ...shipped.models,
            { id: 'reader', kind: 'chat', modalities: ['text', 'file'], routes: [route('openrouter')] },
            { id: 'mistral-reader', kind: 'chat', modalities: ['text', 'file'], routes: [route('mistral')] },
            { id: 'mistral-eye', kind: 'chat', modalities: ['text', 'image'], routes: [route('mistral')] },
            { id: 'other-dialect', kind: 'chat', routes: [route('openrouter', 'anthropic')] },
          ],
        }
      },
    })
  }, 60_000)
  afterAll(async () => {
    await app.stop()
    await maker.close()
  })
  beforeEach(() => maker.reset())
  const chat = (model: string, body: object, more: object = {}) => app.call('POST', '/v1/chat/completions', { model, ...body, ...more })
  const sent = () => maker.requests.at(-1)?.json ?? {}
  const engine = (name: string) => [{ id: 'file-parser', pdf: { engine: name } }]

  test('files are read by an engine of the provider without a fee, or by the model itself', async () => {
    const free = await chat('glm-4.5-air', asked(file))
    expect([free.status, free.headers.get('x-br-dropped-params')], free.text).toEqual([200, null])
    expect(sent()).toMatchObject({ ...asked(file), plugins: engine('cloudflare-ai') })
    for (const stream of [false, true]) {
      expect((await chat('reader', asked(file), { stream })).status).toBe(200)
      expect(sent()['plugins']).toEqual(engine('native'))
    }
    const block = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }
    expect((await app.call('POST', '/v1/messages', { model: 'glm-4.5-air', max_tokens: 9, ...asked(block) })).status).toBe(200)
    expect(sent()['plugins']).toEqual(engine('cloudflare-ai'))
  })

  test('plugins in a request are dropped on the platform key and sent with an own key', async () => {
    const paid = { plugins: engine('mistral-ocr') }
    const reply = await chat('glm-4.5-air', asked(file), paid)
    expect([reply.status, reply.headers.get('x-br-dropped-params')]).toEqual([200, 'plugins'])
    expect(sent()['plugins']).toEqual(engine('cloudflare-ai'))
    expect((await chat('glm-4.5-air', asked(file), { ...paid, ...own })).status).toBe(200)
    expect(sent()['plugins']).toEqual(paid.plugins)
    expect((await chat('glm-4.5-air', asked(file), own)).status).toBe(200)
    expect(sent()).not.toHaveProperty('plugins')
  })

  test('a call with only text is sent unchanged', async () => {
    expect((await chat('glm-4.5-air', asked())).status).toBe(200)
    expect(sent()).not.toHaveProperty('plugins')
  })

  const text = Buffer.from('<p>a thousand pages</p>').toString('base64')
  const hidden: readonly [string, string][] = [
    ['a page of text', `data:text/html;base64,${text}`],
    ['bytes of no type', `data:application/octet-stream;base64,${pdf}`],
    ['JSON', `data:application/json;base64,${text}`],
    ['a PDF that is called a picture', `data:image/png;base64,${pdf}`],
    ['a page that is not base64', 'data:text/html,<p>a thousand pages</p>'],
    ['a type with parameters', `data:text/html;charset="a,b";base64,${text}`],
    ['a space before the type', ` data:application/pdf;base64,${pdf}`],
  ]
  test.each(hidden)('%s in the place of a picture is a file', async (_, url) => {
    const wrapped = { type: 'image_url', image_url: { url } }
    for (const part of [wrapped, { type: 'image_url', image_url: url }, { type: 'document_url', document_url: url }]) {
      const refused = await chat('mistral-eye', asked(part))
      expect([refused.status, refused.json?.error?.code], refused.text).toEqual([400, 'bad_request'])
      expect(refused.json.error.message).toContain('mistral-eye does not read files itself')
    }
    expect(maker.requests).toEqual([])
    expect((await chat('mistral-reader', asked(wrapped))).status).toBe(200)
  })

  test('a picture and a text stay no files', async () => {
    const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
    const quoted = { type: 'text', text: `Decode data:text/html;base64,${text}` }
    for (const part of [picture, quoted, { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }])
      expect((await chat('mistral-eye', asked(part))).status).toBe(200)
  })

  test('a page of text in a message of the other formats is a file', async () => {
    const source = { type: 'base64', media_type: 'text/html', data: text }
    for (const type of ['image', 'document'])
      expect((await app.call('POST', '/v1/messages', { model: 'mistral-eye', max_tokens: 9, ...asked({ type, source }) })).status).toBe(400)
    const part = { type: 'input_image', image_url: `data:text/html;base64,${text}` }
    expect((await app.call('POST', '/v1/responses', { model: 'mistral-eye', input: [{ role: 'user', content: [part] }] })).status).toBe(400)
    expect(maker.requests).toEqual([])
  })

  test('files need an own key where the fee is unknown, unless the model reads files itself', async () => {
    for (const [model, part] of [
      ['mistral-small', file],
      ['mistral-small', linked],
      ['other-dialect', file],
    ] as const) {
      const refused = await chat(model, asked(part))
      expect([refused.status, refused.json?.error?.code], refused.text).toEqual([400, 'bad_request'])
      expect(refused.json.error.message).toContain(`${model} does not read files itself`)
    }
    expect(maker.requests).toEqual([])
    for (const part of [file, linked]) {
      expect((await chat('mistral-reader', asked(part))).status).toBe(200)
      expect(sent()).toMatchObject(asked(part))
      expect((await chat('mistral-small', asked(part), { upstream_key: 'my-own-key-0001' })).status).toBe(200)
    }
    expect((await chat('alpha-only', asked(file))).status).toBe(200)
    const stored = { type: 'document_url', document_url: 'gs://their-bucket/a.pdf' }
    expect((await chat('alpha-only', asked(stored))).json.error?.message).toContain('"messages[0].content[1].document_url" names something that is stored')
  })
})
