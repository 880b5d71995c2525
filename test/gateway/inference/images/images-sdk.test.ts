/** The OpenAI SDK on a new installation. The sandbox makes and edits pictures, and its calls are charged like any other. */
import OpenAI, { toFile } from 'openai'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../harness/app.ts'

describe('images with the OpenAI SDK on the sandbox', () => {
  let app: TestApp
  let client: OpenAI
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' }, operatorFile: () => ({}) })
    client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key, maxRetries: 0 })
  })
  afterAll(() => app.stop())

  const sizeOf = async (png: Buffer) => {
    const { format, width, height } = await sharp(png).metadata()
    return { format, width, height }
  }
  const model = 'sandbox-image'

  test('images.generate returns URLs of real pictures, and base64 of the same pictures', async () => {
    const asked = { model, prompt: 'a red fox', n: 2, size: '512x256' as '512x512' }
    const { data, created } = await client.images.generate(asked)
    expect(Number.isInteger(created)).toBe(true)
    const pictures = await Promise.all((data ?? []).map(async ({ url }) => Buffer.from(await (await fetch(url ?? '')).arrayBuffer())))
    expect(pictures).toHaveLength(2)
    for (const png of pictures) expect(await sizeOf(png)).toEqual({ format: 'png', width: 512, height: 256 })
    expect(pictures[0]?.equals(pictures[1] ?? Buffer.alloc(0))).toBe(false)
    const again = await client.images.generate({ ...asked, response_format: 'b64_json' })
    expect(again.data?.map(({ b64_json }) => b64_json)).toEqual(pictures.map(png => png.toString('base64')))
  })

  test('images.edit takes several pictures and a mask', async () => {
    const { data } = await client.images.generate({ model, prompt: 'a blue fox', response_format: 'b64_json' })
    const png = Buffer.from(data?.[0]?.b64_json ?? '', 'base64')
    const edited = await client.images.edit({
      model,
      prompt: 'with a hat',
      image: [await toFile(png, 'one.png', { type: 'image/png' }), await toFile(png, 'two.png', { type: 'image/png' })],
      mask: await toFile(png, 'mask.png', { type: 'image/png' }),
      response_format: 'b64_json',
      n: 2,
    })
    expect(edited.data).toHaveLength(2)
    expect(await sizeOf(Buffer.from(edited.data?.[0]?.b64_json ?? '', 'base64'))).toMatchObject({ format: 'png' })
    const one = await client.images.edit({ model, prompt: 'with a hat', image: await toFile(png, 'one.png', { type: 'image/png' }) })
    expect(one.data?.[0]?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1\/images\/pictures\//)
  })

  test('a picture costs ₹2, and a failed call costs nothing', async () => {
    const cost = async () => (await app.call('GET', '/v1/usage')).json.totals.cost_uinr
    const before = await cost()
    const made = await client.images.generate({ model, prompt: 'three foxes', n: 3 }).asResponse()
    expect(made.headers.get('x-br-cost-inr')).toBe('6')
    expect((await cost()) - before).toBe(6_000_000)
    await expect(client.images.generate({ model, prompt: 'empty' })).rejects.toMatchObject({ status: 502, code: 'all_routes_failed' })
    await expect(client.images.generate({ model, prompt: 'fail 429' })).rejects.toMatchObject({ status: 502 })
    await expect(client.images.generate({ model, prompt: 'fail 400' })).rejects.toMatchObject({ status: 400, code: 'sandbox_400' })
    expect((await cost()) - before).toBe(6_000_000)
  })

  test('the SDK throws its own error classes', async () => {
    await expect(client.images.generate({ model, prompt: '' })).rejects.toBeInstanceOf(OpenAI.BadRequestError)
    await expect(client.images.generate({ model: 'nope', prompt: 'x' })).rejects.toMatchObject({ status: 400, code: 'model_not_found' })
    await expect(client.images.generate({ prompt: 'x' })).rejects.toMatchObject({ status: 400, code: 'no_route' })
  })

  test('a call with an idempotency key is made once', async () => {
    const headers = { 'idempotency-key': 'picture-1' }
    const first = await app.call('POST', '/v1/images/generations', { model, prompt: 'a fox once' }, { headers })
    const second = await app.call('POST', '/v1/images/generations', { model, prompt: 'a fox once' }, { headers })
    expect([first.status, second.json.error.code]).toEqual([200, 'idempotency_replayed'])
  })
})
