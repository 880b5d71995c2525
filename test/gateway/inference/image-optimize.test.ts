import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp, until } from '../../harness/app.ts'
import { bomb, digest, partOf, picture, sentPictures, sizeOf, urlOf } from '../../harness/pictures.ts'
import type { UpstreamServer } from '../../harness/upstream-server.ts'

const price = { input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }
const vision = (id: string, providers: readonly string[], more: object = {}) => ({
  id,
  kind: 'chat',
  context_length: 100_000,
  max_output_tokens: 1000,
  tools: true,
  modalities: ['text', 'image'],
  routes: providers.map(provider => ({ provider, upstream_model: `${provider}-vision`, ...price })),
  ...more,
})

describe('image_optimize', () => {
  let app: TestApp
  let big: Buffer
  const imageHeader = 'x-br-image-optimized'
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      env: { CIRCUIT_FAILURES: '1000', OPENAI_API_KEY: 'sk-openai' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return {
          providers: [...file.providers, { id: 'openai', base_url: urls.alpha }],
          models: [
            ...file.models,
            vision('vision', ['alpha'], { image_max_edge: 300 }),
            vision('vision-small', ['beta'], { image_max_edge: 100 }),
            vision('vision-unknown', ['alpha']),
            { ...vision('same-eyes', []), image_max_edge: 300, routes: [{ provider: 'alpha', upstream_model: 'same-eyes', ...price }] },
            vision('claude-eyes', ['claude'], { image_max_edge: 300 }),
            vision('newer-eyes', ['resp'], { image_max_edge: 300 }),
            vision('gemini-eyes', ['gem'], { image_max_edge: 300 }),
          ],
        }
      },
    })
    big = await picture(600, 400)
  })
  afterAll(() => app.stop())
  const upstreams = (): UpstreamServer[] => [
    app.alpha,
    app.beta,
    app.indus,
    ...(app.others === null ? [] : [app.others.claude, app.others.gem, app.others.resp]),
  ]
  beforeEach(() => {
    for (const upstream of upstreams()) upstream.reset()
  })
  const ask = (images: readonly string[], body: object = {}) =>
    app.call('POST', '/v1/chat/completions', {
      model: 'vision',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, ...images.map(partOf)] }],
      ...body,
    })

  test("IMGOPT-01 IMGOPT-14 a large picture is reduced to the model's longest edge, keeps shape and format, and a header counts changed ones", async () => {
    for (const format of ['png', 'jpeg', 'webp', 'gif'] as const) {
      app.alpha.reset()
      const large = await picture(600, 400, format)
      const fits = await picture(40, 30)
      const reply = await ask([urlOf(large, `image/${format}`), urlOf(fits), urlOf(await picture(200, 900, format), `image/${format}`)])
      expect([reply.status, reply.headers.get(imageHeader)], format).toEqual([200, '2'])
      const [first, second, third] = sentPictures(app.alpha.requests[0])
      expect(await sizeOf(first)).toEqual([300, 200])
      expect(await sizeOf(third)).toEqual([67, 300])
      expect(second?.equals(fits)).toBe(true)
      expect((await sharp(first).metadata()).format).toBe(format)
      const text = JSON.stringify(app.alpha.requests[0]?.json)
      expect(text).toContain(`data:image/${format};base64,`)
      expect(text).toContain('"detail":"high"')
    }
  })

  test('IMGOPT-01 a picture in a streamed SDK call is also reduced', async () => {
    const client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
    const { data, response } = await client.chat.completions
      .create({ model: 'vision', stream: true, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: urlOf(big) } }] }] })
      .withResponse()
    let text = ''
    for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? ''
    expect(text).not.toBe('')
    expect(response.headers.get(imageHeader)).toBe('1')
    expect(await sizeOf(sentPictures(app.alpha.requests[0])[0])).toEqual([300, 200])
  })

  test('IMGOPT-02 when all pictures fit, the whole request is sent byte for byte, without a header', async () => {
    const exact = await picture(300, 300)
    const body = JSON.stringify({ model: 'same-eyes', messages: [{ role: 'user', content: [partOf(urlOf(exact)), partOf(urlOf(exact))] }], seed: 1 }, null, 1)
    const reply = await app.call('POST', '/v1/chat/completions', body, { headers: { 'content-type': 'application/json' } })
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, null])
    expect(app.alpha.requests[0]?.raw.toString()).toBe(body)
    expect((await ask([urlOf(exact)])).headers.get(imageHeader)).toBeNull()
    expect(sentPictures(app.alpha.requests[1])[0]?.equals(exact)).toBe(true)
  })

  test('IMGOPT-03 a small picture is never enlarged, for any parameters', async () => {
    const tiny = await picture(10, 8)
    const reply = await ask([urlOf(tiny)], { image_max_edge: 5000 })
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, null])
    expect(sentPictures(app.alpha.requests[0])[0]?.equals(tiny)).toBe(true)
  })

  test('IMGOPT-04 image_optimize: off sends the bytes unchanged, without a header', async () => {
    const reply = await ask([urlOf(big)], { image_optimize: 'off', image_max_edge: 50 })
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, null])
    expect(sentPictures(app.alpha.requests[0])[0]?.equals(big)).toBe(true)
    expect(JSON.stringify(app.alpha.requests[0]?.json)).not.toMatch(/image_optimize|image_max_edge/)
  })

  test('IMGOPT-05 pictures in tool results are unchanged in all three APIs, even if a translation moves them', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }
    const other = await picture(700, 300)
    const chat = await app.call('POST', '/v1/chat/completions', {
      model: 'vision',
      messages: [
        { role: 'user', content: [partOf(urlOf(other))] },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c1', content: [partOf(urlOf(big))] },
      ],
    })
    expect(chat.headers.get(imageHeader)).toBe('1')
    expect(sentPictures(app.alpha.requests[0])[1]?.equals(big)).toBe(true)
    const source = (bytes: Buffer) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: bytes.toString('base64') } })
    const messages = [
      { role: 'user', content: [source(other)] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'seen' }, source(big)] }] },
    ]
    const tools = [{ name: 'look', input_schema: { type: 'object' } }]
    const translated = await app.call('POST', '/v1/messages', { model: 'vision', max_tokens: 50, messages, tools })
    expect([translated.status, translated.headers.get(imageHeader)], translated.text).toEqual([200, '1'])
    const sent = sentPictures(app.alpha.requests[1])
    expect(sent.some(bytes => bytes.equals(big))).toBe(true)
    expect(sent.some(bytes => bytes.equals(other))).toBe(false)
    const responses = await app.call('POST', '/v1/responses', {
      model: 'vision',
      input: [
        { role: 'user', content: [{ type: 'input_image', image_url: urlOf(other) }] },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_image', image_url: urlOf(big) }] },
      ],
    })
    expect([responses.status, responses.headers.get(imageHeader)], responses.text).toEqual([200, '1'])
    const inHub = sentPictures(app.alpha.requests[2])
    expect(inHub.some(bytes => bytes.equals(other))).toBe(false)
    expect(inHub.every(bytes => bytes.equals(big) || bytes.length < other.length)).toBe(true)
  })

  test('IMGOPT-06 a picture that is given by its URL is neither fetched nor changed', async () => {
    const url = `${app.beta.url}/picture.png`
    const reply = await ask([url, url.replace('http:', 'https:')])
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, null])
    expect(JSON.stringify(app.alpha.requests[0]?.json)).toContain(`"url":"${url}"`)
    expect(app.beta.requests).toHaveLength(0)
  })

  test('IMGOPT-07 IMGOPT-08 image_max_edge can lower the limit of the model but not raise it, and is the only limit if the model has none', async () => {
    const edge = async (model: string, image_max_edge?: number) => {
      app.alpha.reset()
      await ask([urlOf(big)], { model, ...(image_max_edge === undefined ? {} : { image_max_edge }) })
      return (await sizeOf(sentPictures(app.alpha.requests[0])[0]))[0]
    }
    expect(await edge('vision', 60)).toBe(60)
    expect(await edge('vision', 60.9)).toBe(60)
    expect(await edge('vision', 500)).toBe(300)
    expect(await edge('vision-unknown')).toBe(600)
    expect(await edge('vision-unknown', 450)).toBe(450)
  })

  test('IMGOPT-09 ROUTE-50 invalid values are 400 bad_request, and no provider is called', async () => {
    for (const body of [
      { image_max_edge: 0 },
      { image_max_edge: -5 },
      { image_max_edge: '512' },
      { image_max_edge: [] },
      { image_optimize: 'on' },
      { image_optimize: true },
      { image_optimize: '' },
    ]) {
      const reply = await ask([urlOf(big)], body)
      expect([reply.status, reply.json.error.code], JSON.stringify(body)).toEqual([400, 'bad_request'])
    }
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('IMGOPT-10 data that cannot be reduced is sent unchanged: no picture, an incomplete picture, an animation, an SVG', async () => {
    const moving = await sharp([await picture(600, 400), await picture(600, 400, 'png', undefined, 90)], { join: { animated: true } })
      .gif()
      .toBuffer()
    const odd = [
      urlOf(Buffer.from('this is no picture at all')),
      urlOf(big.subarray(0, 200)),
      urlOf(moving, 'image/gif'),
      urlOf(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9000" height="9000"/>'), 'image/svg+xml'),
      'data:image/png;base64,',
      'data:image/png;base64,%%%%',
      'data:text/plain,hello',
    ]
    expect((await sharp(moving).metadata()).pages).toBe(2)
    const reply = await ask(odd)
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, null])
    const text = JSON.stringify(app.alpha.requests[0]?.json)
    for (const url of odd) expect(text).toContain(JSON.stringify(url))
  })

  test('IMGOPT-11 the latest vision models get 2,576 pixels, and older ones get fewer', async () => {
    const wide = await sharp({ create: { width: 4000, height: 100, channels: 3, background: 'blue' } })
      .png()
      .toBuffer()
    const edges: Record<string, number | undefined> = {}
    for (const model of ['gpt-5.6-sol', 'gpt-4o']) {
      app.alpha.reset()
      const reply = await ask([urlOf(wide)], { model, provider: 'openai' })
      expect(reply.status, reply.text).toBe(200)
      edges[model] = (await sizeOf(sentPictures(app.alpha.requests[0])[0]))[0]
    }
    expect(edges).toEqual({ 'gpt-5.6-sol': 2576, 'gpt-4o': 2048 })
    const file = JSON.parse(readFileSync(new URL('../../../catalog/models.json', import.meta.url), 'utf8')) as {
      models: { id: string; image_max_edge?: number }[]
    }
    const known = file.models.flatMap(({ image_max_edge: edge }) => (edge === undefined ? [] : [edge]))
    expect(Math.max(...known)).toBe(2576)
    expect(known.some(edge => edge < 2576)).toBe(true)
  })

  test('IMGOPT-12 a failover to a model with another limit starts from the original picture', async () => {
    await ask([urlOf(big)], { model: 'vision-small' })
    const direct = sentPictures(app.beta.requests[0])[0]
    app.beta.reset()
    app.alpha.script([{ status: 503 }])
    const reply = await ask([urlOf(big)], { fallbacks: ['vision', 'vision-small'] })
    expect([reply.headers.get('x-br-provider'), reply.headers.get(imageHeader)]).toEqual(['beta', '1'])
    const [first] = sentPictures(app.alpha.requests[0])
    const [second] = sentPictures(app.beta.requests[0])
    expect([await sizeOf(first), await sizeOf(second)]).toEqual([
      [300, 200],
      [100, 67],
    ])
    expect(direct !== undefined && second?.equals(direct)).toBe(true)
  })

  test('only the first hundred pictures of a request are reduced', async () => {
    const many = await Promise.all(Array.from({ length: 102 }, (_, index) => picture(310, 2, 'png', undefined, index)))
    const reply = await ask(many.map(bytes => urlOf(bytes)))
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, '100'])
    const sent = sentPictures(app.alpha.requests[0])
    expect(sent.map((bytes, index) => many[index]?.equals(bytes))).toEqual(many.map((_, index) => index >= 100))
  })

  test('a picture with a stored rotation arrives upright', async () => {
    // Orientation 6 means a rotation by 90 degrees to the right, so the result is 400 wide and 600 high.
    const turned = await picture(600, 400, 'jpeg', 6)
    await ask([urlOf(turned, 'image/jpeg')])
    const [sent] = sentPictures(app.alpha.requests[0])
    expect(await sizeOf(sent)).toEqual([200, 300])
    expect((await sharp(sent).metadata()).orientation ?? 1).toBe(1)
    // The stored lower left corner is shown at the upper left: little red, much green.
    const { data, info } = await sharp(sent).raw().toBuffer({ resolveWithObject: true })
    expect(data[0]).toBeLessThan(40)
    expect(data[1]).toBeGreaterThan(200)
    expect(info.channels).toBe(3)
  })

  test('a picture of 30,000 by 30,000 pixels in a hundred kilobytes is sent without decoding it', async () => {
    const bytes = bomb(30_000, 30_000)
    expect(bytes.length).toBeLessThan(500_000)
    const before = process.memoryUsage().rss
    const startedAt = performance.now()
    const reply = await ask([urlOf(bytes), urlOf(bytes), urlOf(big)])
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, '1'])
    expect(sentPictures(app.alpha.requests[0])[0]?.equals(bytes)).toBe(true)
    expect(performance.now() - startedAt).toBeLessThan(5000)
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
  })

  test('the event loop is not blocked while pictures are reduced', async () => {
    const huge = await sharp({ create: { width: 5000, height: 5000, channels: 3, background: 'green' } })
      .jpeg()
      .toBuffer()
    const asked = Promise.all(Array.from({ length: 4 }, () => ask([urlOf(huge, 'image/jpeg')])))
    const replies = await Promise.all([
      app.call('GET', '/v1/models'),
      app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'hi' }] }),
    ])
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
    expect((await asked).map(({ status, headers }) => [status, headers.get(imageHeader)])).toEqual(Array.from({ length: 4 }, () => [200, '1']))
  })

  test('HARD-11 many large pictures of one organisation delay those of another only by a few pictures', async () => {
    const heavy = urlOf(
      await sharp({ create: { width: 3000, height: 3000, channels: 3, background: 'red' } })
        .png()
        .toBuffer(),
    )
    const { key } = await app.otherOrg('Heavy Pictures')
    let heavyDone = 0
    const body = { model: 'vision-unknown', image_max_edge: 2999, messages: [{ role: 'user', content: [partOf(heavy)] }] }
    const all = Array.from({ length: 16 }, async () => {
      const { status } = await app.call('POST', '/v1/chat/completions', body, { token: key })
      heavyDone++
      return status
    })
    await until(() => heavyDone > 0)
    const reply = await ask([urlOf(big)])
    expect([reply.status, reply.headers.get(imageHeader)]).toEqual([200, '1'])
    expect(heavyDone).toBeLessThan(10)
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]))
  }, 60_000)

  test('in the messages format, pictures of translated requests are reduced, and relayed requests are unchanged unless the caller asks for it', async () => {
    const claude = app.others?.claude
    const body = (model: string, more: object = {}) => ({
      model,
      max_tokens: 50,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: big.toString('base64') } },
            { type: 'text', text: 'What?' },
          ],
        },
      ],
      ...more,
    })
    const translated = await app.call('POST', '/v1/messages', body('vision'))
    expect([translated.status, translated.headers.get(imageHeader)]).toEqual([200, '1'])
    expect(await sizeOf(sentPictures(app.alpha.requests[0])[0])).toEqual([300, 200])
    const relayed = await app.call('POST', '/v1/messages', body('claude-eyes'))
    expect([relayed.status, relayed.headers.get(imageHeader)]).toEqual([200, null])
    expect(sentPictures(claude?.requests[0])[0]?.equals(big)).toBe(true)
    for (const [index, more] of [{ image_optimize: 'auto' }, { image_max_edge: 120 }].entries()) {
      const asked = await app.call('POST', '/v1/messages', body('claude-eyes', more))
      expect([asked.status, asked.headers.get(imageHeader)]).toEqual([200, '1'])
      expect(await sizeOf(sentPictures(claude?.requests[index + 1])[0])).toEqual(index === 0 ? [300, 200] : [120, 80])
      expect(claude?.requests[index + 1]?.json).not.toHaveProperty(Object.keys(more)[0] ?? '')
    }
  })

  test('pictures are reduced in chat requests to other dialects, and in input_image of the responses API, translated and relayed', async () => {
    for (const [model, upstream] of [
      ['claude-eyes', app.others?.claude],
      ['newer-eyes', app.others?.resp],
    ] as const) {
      const reply = await ask([urlOf(big)], { model })
      expect([reply.status, reply.headers.get(imageHeader)], reply.text).toEqual([200, '1'])
      expect(await sizeOf(sentPictures(upstream?.requests[0])[0]), model).toEqual([300, 200])
      upstream?.reset()
    }
    const input = [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'What?' },
          { type: 'input_image', image_url: urlOf(big) },
        ],
      },
    ]
    for (const [model, upstream] of [
      ['vision', app.alpha],
      ['newer-eyes', app.others?.resp],
    ] as const) {
      const reply = await app.call('POST', '/v1/responses', { model, input })
      expect([reply.status, reply.headers.get(imageHeader)], reply.text).toEqual([200, '1'])
      expect(await sizeOf(sentPictures(upstream?.requests[0])[0]), model).toEqual([300, 200])
    }
  })

  test('IMGOPT-13 no byte of a picture is written to the disk, the database or logs', async () => {
    const marked = await picture(640, 480)
    const sample = marked.toString('base64').slice(100, 140)
    await ask([urlOf(marked)])
    const small = sentPictures(app.alpha.requests[0])[0]
    const words = [sample, small?.toString('base64').slice(100, 140) ?? '', digest(marked)]
    const texts = [app.logLines.join('\n'), await app.dump()]
    const walk = (folder: string): void => {
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (entry.isDirectory()) walk(join(folder, entry.name))
        else if (entry.isFile()) texts.push(readFileSync(join(folder, entry.name), 'latin1'))
      }
    }
    walk(app.dataDir)
    for (const text of texts) for (const word of words) expect(text.includes(word)).toBe(false)
  })
})
