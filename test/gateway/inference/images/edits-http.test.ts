import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'
import { checkAgainstRow } from '../../../harness/row-contract.ts'
import { base64, type ImageProviders, keys, pixel, startImageProviders } from './image-providers.ts'

const jpeg = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), Buffer.from('not much of a picture')])
const webp = Buffer.concat([Buffer.from('RIFF\x1a\x00\x00\x00WEBPVP8 ', 'latin1'), Buffer.alloc(14)])

describe('image edits over HTTP', () => {
  let app: TestApp
  let providers: ImageProviders
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await startApp({ env: { ...providers.env, FORM_FILE_LIMIT_BYTES: '20000', FORM_LIMIT_BYTES: '50000', CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => providers.reset())

  type Part = string | number | { readonly bytes: Buffer; readonly name?: string; readonly type?: string }
  const file = (bytes: Buffer, name = 'picture.png', type = 'image/png'): Part => ({ bytes, name, type })
  const form = (parts: readonly (readonly [string, Part])[]): FormData => {
    const made = new FormData()
    for (const [name, part] of parts) {
      if (typeof part !== 'object') made.append(name, String(part))
      else made.append(name, new Blob([new Uint8Array(part.bytes)], { type: part.type ?? '' }), part.name ?? '')
    }
    return made
  }
  const usual: (readonly [string, Part])[] = [
    ['image', file(pixel)],
    ['prompt', 'a hat on it'],
    ['upstream_key', keys.openai],
  ]
  const post = async (body: FormData | string, headers: Record<string, string> = {}, token: string | null = app.key) => {
    const response = await fetch(`${app.baseUrl}/v1/images/edits`, {
      method: 'POST',
      body,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    })
    const json = JSON.parse(await response.text())
    checkAgainstRow('POST', '/v1/images/edits', response.status, json)
    return { status: response.status, headers: response.headers, json }
  }
  const edit = (more: readonly (readonly [string, Part])[] = [], without: readonly string[] = []) =>
    post(form([...usual.filter(([name]) => !without.includes(name)), ...more]))
  const codeOf = ({ status, json }: { status: number; json: { error?: { code: string } } }) => [status, json.error?.code]
  const sent = () => {
    const found = providers.of('openai').at(-1)?.form
    if (!found) throw new Error('no form arrived')
    return found
  }
  const bytesOf = async (value: ReturnType<FormData['get']>) => (value instanceof Blob ? Buffer.from(await value.arrayBuffer()) : null)

  test('IMG-20 a body that is not a multipart form is 415', async () => {
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'image/png'])
      expect(codeOf(await post('{"prompt":"x"}', { 'content-type': type })), type).toEqual([415, 'unsupported_media_type'])
    expect(codeOf(await post('nothing', { 'content-type': 'multipart/form-data' }))[0]).toBe(415)
    expect(codeOf(await post('nothing', { 'content-type': 'multipart/form-data; boundary=x' }))).toEqual([400, 'bad_request'])
    expect(providers.seen).toEqual([])
  })

  test('IMG-21 a form without a picture or without a prompt is 400 bad_request that names the missing field', async () => {
    const cases: [Awaited<ReturnType<typeof edit>>, string][] = [
      [await edit([], ['image']), '"image"'],
      [await edit([['image', 'https://example.com/a.png']], ['image']), '"image"'],
      [await edit([], ['prompt']), '"prompt"'],
      [await edit([['prompt', '']], ['prompt']), '"prompt"'],
    ]
    for (const [reply, named] of cases) {
      expect(codeOf(reply)).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain(named)
    }
    expect(providers.seen).toEqual([])
  })

  test('IMG-22 several pictures, sent as image or image[], arrive unchanged and in order', async () => {
    for (const name of ['image', 'image[]']) {
      const reply = await edit(
        [
          [name, file(pixel, 'one.png')],
          [name, file(jpeg, 'two.jpg')],
          [name, file(webp, 'three.webp')],
        ],
        ['image'],
      )
      expect(reply.status).toBe(200)
      const given = sent().getAll('image[]') as File[]
      expect(given.map(one => [one.name, one.type])).toEqual([
        ['one.png', 'image/png'],
        ['two.jpg', 'image/jpeg'],
        ['three.webp', 'image/webp'],
      ])
      expect(await Promise.all(given.map(bytesOf))).toEqual([pixel, jpeg, webp])
    }
    await edit()
    expect(await bytesOf(sent().get('image'))).toEqual(pixel)
  })

  test('IMG-23 the mask is forwarded unchanged', async () => {
    const mask = Buffer.concat([pixel, Buffer.from('mask')])
    expect((await edit([['mask', file(mask, 'mask.png')]])).status).toBe(200)
    expect(await bytesOf(sent().get('mask'))).toEqual(mask)
    expect(
      codeOf(
        await edit([
          ['mask', file(mask)],
          ['mask', file(mask)],
        ]),
      ),
    ).toEqual([400, 'bad_request'])
  })

  test('IMG-24 a model that cannot edit is 400 unsupported_operation', async () => {
    for (const model of ['sdxl', 'dall-e-3', 'flux-1-pro', 'gemini-image', 'test-model']) {
      const reply = await edit([['model', model]])
      expect(codeOf(reply), model).toEqual([400, 'unsupported_operation'])
      expect(reply.json.error.message).toContain('gpt-image-1')
    }
    for (const model of ['gpt-image-1', 'gpt-image-1-mini']) expect((await edit([['model', model]])).status, model).toBe(200)
    expect(providers.seen).toHaveLength(2)
  })

  test('IMG-25 a request without a model uses gpt-image-1', async () => {
    for (const more of [[], [['model', ''] as const]]) {
      expect((await edit(more)).status).toBe(200)
      expect(sent().get('model')).toBe('gpt-image-1')
    }
  })

  test('IMG-26 an unknown model is 400 model_not_found', async () => {
    for (const model of ['nope', 'auto']) expect(codeOf(await edit([['model', model]])), model).toEqual([400, 'model_not_found'])
  })

  test('IMG-27 router fields are read from the form and never forwarded, and exclude can be repeated or JSON', async () => {
    const rejected = [
      [['exclude', 'openai']],
      [['exclude', '["openai"]']],
      [
        ['exclude', 'together'],
        ['exclude', 'openai/gpt-image-1'],
      ],
      [['exclude[]', 'openai']],
      [['data_policy', 'india_only']],
    ] as const
    for (const more of rejected) expect(codeOf(await edit(more)), JSON.stringify(more)).toEqual([422, 'no_route'])
    expect(codeOf(await edit([['provider', 'together']]))).toEqual([400, 'no_route'])
    for (const more of [[['data_policy', 'eu']], [['exclude', '["openai"']], [['optimize', 'cheap']]] as const)
      expect(codeOf(await edit(more)), JSON.stringify(more)).toEqual([400, 'bad_request'])
    expect(providers.seen).toEqual([])
    const fine = await edit([
      ['provider', 'openai'],
      ['exclude', 'together'],
      ['optimize', 'latency'],
      ['n', 2],
      ['size', '1024x1536'],
      ['quality', 'low'],
      ['user', 'u-7'],
      ['background', 'transparent'],
    ])
    expect(fine.status).toBe(200)
    const fields = [...sent().entries()].filter(([, value]) => typeof value === 'string')
    expect(Object.fromEntries(fields)).toEqual({
      model: 'gpt-image-1',
      prompt: 'a hat on it',
      n: '2',
      size: '1024x1536',
      quality: 'low',
      user: 'u-7',
      background: 'transparent',
    })
  })

  test('IMG-28 the reply has the form of generations, and delivered pictures are charged', async () => {
    const value = async () => Math.round((await app.call('GET', '/v1/usage')).json.totals.value_inr * 1e6)
    const before = await value()
    const reply = await edit([
      ['n', 3],
      ['response_format', 'b64_json'],
    ])
    expect(reply.json).toEqual({ created: 1_700_000_002, data: [{ b64_json: base64 }, { b64_json: base64 }, { b64_json: base64 }] })
    expect(reply.headers.get('x-br-dropped-params')).toBeNull()
    // The price is ₹4.03 for an image.
    expect((await value()) - before).toBe(12_090_000)
    providers.answer(() => ({ body: { created: 1, data: [{ b64_json: base64 }] } }))
    expect((await edit([['n', 2]])).json.data).toHaveLength(1)
    expect((await value()) - before).toBe(16_120_000)
    providers.answer(() => ({ body: { created: 1, data: [] } }))
    expect(codeOf(await edit())).toEqual([502, 'all_routes_failed'])
    expect((await value()) - before).toBe(16_120_000)
    expect((await app.call('GET', '/v1/usage')).json.totals.cost_uinr).toBe(0)
  })

  test('IMG-29 of several errors, an unknown model is reported first, then the operation, then residency, then the credential', async () => {
    const wrong = (model: string, indiaOnly: boolean, key: boolean) =>
      edit([['model', model], ...(indiaOnly ? [['data_policy', 'india_only'] as const] : [])], key ? [] : ['upstream_key'])
    expect(codeOf(await wrong('nope', true, false))).toEqual([400, 'model_not_found'])
    expect(codeOf(await wrong('sdxl', true, false))).toEqual([400, 'unsupported_operation'])
    expect(codeOf(await wrong('gpt-image-1', true, false))).toEqual([422, 'no_route'])
    expect(codeOf(await wrong('gpt-image-1', false, false))).toEqual([400, 'no_route'])
    expect((await wrong('gpt-image-1', false, true)).status).toBe(200)
  })

  test('PANEL-13 an edit with the panel is 400 unsupported_operation', async () => {
    for (const model of ['image-sangam', 'brigade/image-sangam', 'image-sangam:india'])
      expect(codeOf(await edit([['model', model]])), model).toEqual([400, 'unsupported_operation'])
  })

  test('the bytes of a file decide whether it is a picture, not its name or type, and a wrong type is corrected', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('GIF89a..........'), Buffer.from('<svg xmlns="x"/>'), Buffer.from('RIFFxxxxWAVE')]) {
      const reply = await edit([['image', file(bytes)]], ['image'])
      expect(codeOf(reply)).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('"image"')
    }
    await edit([['image', file(jpeg, '', 'application/octet-stream')]], ['image'])
    const given = sent().get('image') as File
    expect([given.type, given.name]).toEqual(['image/jpeg', 'image.jpeg'])
    expect(codeOf(await edit([['mask', file(Buffer.from('nothing'))]]))).toEqual([400, 'bad_request'])
    expect(codeOf(await edit([['attachment', file(pixel)]]))).toEqual([400, 'bad_request'])
  })

  test('a file or form that is too large is 413, and a field that is given twice is 400', async () => {
    expect(codeOf(await edit([['image', file(Buffer.concat([pixel, Buffer.alloc(20_000)]))]], ['image']))).toEqual([413, 'payload_too_large'])
    const many = Array.from({ length: 3 }, () => ['image', file(Buffer.concat([pixel, Buffer.alloc(19_000)]))] as const)
    expect(codeOf(await edit(many, ['image']))).toEqual([413, 'payload_too_large'])
    for (const name of ['prompt', 'n', 'size'])
      expect(
        codeOf(
          await edit([
            [name, '1'],
            [name, '2'],
          ]),
        ),
        name,
      ).toEqual([400, 'bad_request'])
    for (const n of ['0', '-1', '1.5', 'two']) expect(codeOf(await edit([['n', n]])), n).toEqual([400, 'bad_request'])
    expect(codeOf(await edit([['stream', 'true']]))).toEqual([400, 'bad_request'])
    expect(providers.seen).toEqual([])
    expect((await edit([['n', '9']])).json.data).toHaveLength(4)
    const pictures = (count: number) => Array.from({ length: count }, () => ['image[]', file(pixel)] as const)
    expect(codeOf(await edit(pictures(17), ['image']))).toEqual([400, 'bad_request'])
    expect((await edit(pictures(16), ['image'])).status).toBe(200)
    expect(sent().getAll('image[]')).toHaveLength(16)
  })

  test('bytes in a file that look like the end of a part do not end it', async () => {
    const tricky = Buffer.concat([pixel, Buffer.from('\r\n--brigade-\r\ncontent-disposition: form-data; name="n"\r\n\r\n4\r\n--')])
    await edit([['image', file(tricky, 'a"b\r\nc.png')]], ['image'])
    expect(await bytesOf(sent().get('image'))).toEqual(tricky)
    expect(sent().getAll('n')).toEqual(['1'])
  })

  test('a form without a key is 401', async () => {
    expect((await post(form(usual), {}, null)).status).toBe(401)
  })
})
