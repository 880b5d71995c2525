import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../../harness/app.ts'
import { base64, type ImageProviders, keys, type Seen, startImageProviders } from './image-providers.ts'

const path = '/v1/images/generations'
const prompt = 'an otter repairing a marigold lighthouse'
const members = ['flux-1-schnell', 'flux-1-dev', 'sdxl']
const upstreamModels = ['black-forest-labs/FLUX.1-schnell', 'black-forest-labs/FLUX.1-dev', 'stabilityai/stable-diffusion-xl-base-1.0']
/** The value of the panel's pictures: ₹0.26 + ₹2.40 + ₹0.30. */
const panelUinr = 2_960_000
/** 12 prompt tokens at ₹10 and 5 completion tokens at ₹40 a million. */
const judgeUinr = 320

describe('the image panel over HTTP', () => {
  let app: TestApp
  let providers: ImageProviders
  /** `together` serves all three members, and `ganga` in India serves two. `eye` is a vision model, and `eye-india` is added on request. */
  const start = (withIndianEye: boolean): Promise<TestApp> =>
    startApp({
      env: { ...providers.env, PANEL_JUDGE_TIMEOUT_MS: '300', CIRCUIT_FAILURES: '1000' },
      operatorFile: urls => {
        const file = defaultOperatorFile(urls)
        const route = (provider: string) => ({ provider, input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' })
        const eye = (id: string, provider: string) => ({ id, kind: 'chat', context_length: 100_000, modalities: ['text', 'image'], routes: [route(provider)] })
        const drawn = (id: string, upstream_model: string) => ({
          id,
          routes: [
            { provider: 'together', upstream_model, byok_only: true, rank: 1, inr_per_image_most: 9 },
            { provider: 'ganga', byok_only: true },
          ],
        })
        return {
          providers: [...file.providers, { id: 'ganga', base_url: `${providers.origin}/ganga/v1`, residency: 'india' }],
          models: [
            ...file.models,
            eye('eye', 'alpha'),
            ...(withIndianEye ? [eye('eye-india', 'indus')] : []),
            drawn('flux-1-schnell', upstreamModels[0] ?? ''),
            drawn('flux-1-dev', upstreamModels[1] ?? ''),
          ],
        }
      },
    })
  beforeAll(async () => {
    providers = await startImageProviders()
    app = await start(false)
  })
  afterAll(async () => {
    await app.stop()
    await providers.close()
  })
  beforeEach(() => {
    providers.reset()
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const ask = (body: object = {}, token?: string) =>
    app.call('POST', path, { model: 'brigade/image-sangam', prompt, upstream_key: keys.together, ...body }, token === undefined ? {} : { token })
  const verdict = (text: string) => app.alpha.script({ chunks: [text] })
  const codeOf = ({ status, json }: { status: number; json: { error?: { code: string } } }) => [status, json.error?.code]
  const judged = () => app.alpha.requests.filter(({ json }) => json?.['messages'] !== undefined)
  const modelOf = ({ json }: Seen) => String(json['model'])
  const failing = (...bad: string[]) => providers.answer(one => (bad.includes(modelOf(one)) ? { status: 500, body: {} } : undefined))
  const rows = async () => (await app.call('GET', '/v1/usage')).json.by_model as { model: string; requests: number; cost_uinr: number; value_inr: number }[]
  const spentBy = async (act: () => Promise<unknown>) => {
    const before = await rows()
    await act()
    const changed = (await rows()).map(row => {
      const old = before.find(({ model }) => model === row.model)
      return [row.model, row.requests - (old?.requests ?? 0), row.cost_uinr - (old?.cost_uinr ?? 0), Math.round((row.value_inr - (old?.value_inr ?? 0)) * 1e6)]
    })
    return changed.filter(([, requests]) => requests !== 0).sort()
  }
  /** Makes every picture URL name the model that made it. */
  const byModel = () =>
    providers.answer(one =>
      one.json['prompt'] === undefined ? undefined : { body: { created: 9, data: [{ url: `https://images.example/${modelOf(one)}.png` }] } },
    )

  test('PANEL-01 the three members are called concurrently', async () => {
    let arrived = 0
    let open = (): void => {}
    const all = new Promise<void>(resolve => {
      open = resolve
    })
    providers.answer(async () => {
      if (++arrived === 3) open()
      await all
      return undefined
    })
    expect((await ask()).status).toBe(200)
    expect(providers.seen.map(modelOf).sort()).toEqual([...upstreamModels].sort())
    expect(providers.seen.every(({ json }) => json['prompt'] === prompt)).toBe(true)
  })

  test('PANEL-02 the reply has the one picture that the judge chose, with details of the choice', async () => {
    byModel()
    verdict('{"best": 2}')
    const { status, json } = await ask()
    expect(status).toBe(200)
    expect(json).toEqual({
      created: 9,
      data: [{ url: `https://images.example/${upstreamModels[1]}.png` }],
      br_sangam: {
        kind: 'image',
        panel: members.map(model => ({ model, provider: 'together', ok: true })),
        chosen: { model: 'flux-1-dev', provider: 'together', index: 1 },
        judge_model: 'eye',
        judged: true,
        reason: 'picked by the judge',
      },
    })
  })

  test('HARD-03 large pictures of the members are parsed and written in pieces', async () => {
    const picture = 'A'.repeat(2_500_000)
    const reply = Buffer.from(JSON.stringify({ created: 9, data: [{ b64_json: picture }] }))
    providers.answer(() => ({ body: reply }))
    verdict('{"best": 2}')
    const isLong = (text: unknown): boolean => typeof text === 'string' && text.length >= picture.length
    const [stringify, parse] = [vi.spyOn(JSON, 'stringify'), vi.spyOn(JSON, 'parse')]
    const { status, json } = await ask()
    const written = stringify.mock.results.filter(({ value }) => isLong(value)).length
    const parsed = parse.mock.calls.filter(([text]) => isLong(text)).length
    stringify.mockRestore()
    parse.mockRestore()
    expect([status, written, json.created, json.data[0].b64_json === picture]).toEqual([200, 0, 9, true])
    // The client of this test and the upstream of the judge parse whole bodies.
    expect(parsed).toBeLessThanOrEqual(2)
  })

  test('PANEL-03 the reply names every member with its provider and its success', async () => {
    failing(upstreamModels[1] ?? '')
    verdict('{"best": 2}')
    const { json } = await ask()
    expect(json.br_sangam.panel).toEqual([
      { model: 'flux-1-schnell', provider: 'together', ok: true },
      { model: 'flux-1-dev', provider: 'together', ok: false },
      { model: 'sdxl', provider: 'together', ok: true },
    ])
    // The second picture that the judge saw is that of the third member.
    expect(json.br_sangam.chosen).toEqual({ model: 'sdxl', provider: 'together', index: 2 })
  })

  test('PANEL-04 a header has the same details in ASCII, without text of the prompt, the picture or the judge', async () => {
    verdict('{"best": 3}')
    const reply = await ask({ prompt: 'ऊदबिलाव and a marigold' })
    const header = reply.headers.get('x-br-sangam') ?? ''
    expect(JSON.parse(header)).toEqual(reply.json.br_sangam)
    expect(header).toMatch(/^[\x20-\x7e]+$/)
    for (const word of ['marigold', 'images.example', 'best']) expect(header).not.toContain(word)
  })

  test('PANEL-05 when the judge fails, is late, or gives an invalid answer, the first picture is returned as not judged', async () => {
    byModel()
    const first = async (why: string, model: string | null) => {
      const { status, json } = await ask()
      expect([status, json.data[0].url]).toEqual([200, `https://images.example/${upstreamModels[0]}.png`])
      expect(json.br_sangam).toMatchObject({ judged: false, reason: why, judge_model: model, chosen: { model: 'flux-1-schnell', index: 0 } })
    }
    for (const said of [
      '',
      'the second',
      '2',
      '{"best": 0}',
      '{"best": 4}',
      '{"best": -1}',
      '{"best": 1.5}',
      '{"best": "1"}',
      '[2]',
      'null',
      '{"best": 2} I like it',
      '{',
    ]) {
      verdict(said)
      await first('the answer of the judge could not be used', 'eye')
    }
    app.alpha.script({ status: 500 })
    await first('the judge failed', 'auto:vision')
    app.alpha.script({ status: 400, body: { error: { message: 'images are not for me' } } })
    await first('the judge failed', 'auto:vision')
    app.alpha.script({ hang: true })
    await first('the judge did not answer in time', 'auto:vision')
    app.alpha.script({ body: { id: 'x', choices: [{ index: 0, message: { role: 'assistant', content: null }, finish_reason: 'stop' }] } })
    await first('the answer of the judge could not be used', 'eye')
    verdict('```json\n{"best": 2}\n```')
    expect((await ask()).json.br_sangam.judged).toBe(true)
  })

  test('PANEL-06 PANEL-14 a single picture is returned without a judge, and judge_model is null', async () => {
    failing(upstreamModels[0] ?? '', upstreamModels[2] ?? '')
    const { status, json } = await ask()
    expect(status).toBe(200)
    expect(json.br_sangam).toMatchObject({ judged: false, judge_model: null, reason: 'only one image was made', chosen: { model: 'flux-1-dev', index: 1 } })
    expect(judged()).toEqual([])
  })

  test('PANEL-07 when no member makes a picture, the answer is a 502 error', async () => {
    failing(...upstreamModels)
    const reply = await ask()
    expect(codeOf(reply)).toEqual([502, 'all_routes_failed'])
    expect(reply.json.error.message).toContain('flux-1-schnell: all_routes_failed')
    providers.answer(() => ({ status: 400, body: { error: { message: `no: ${prompt}` } } }))
    const refused = await ask()
    expect(codeOf(refused)).toEqual([502, 'all_routes_failed'])
    expect(refused.text).not.toContain('marigold')
    expect(judged()).toEqual([])
  })

  test('PANEL-08 with india_only, only Indian routes make and judge pictures, and without an Indian route the call is 422', async () => {
    const indian = await start(true)
    try {
      for (const body of [{ data_policy: 'india_only' }, { model: 'image-sangam:india' }, { model: 'brigade/image-sangam:residency:india' }]) {
        providers.reset()
        indian.indus.script({ chunks: ['{"best": 2}'] })
        const { status, json } = await indian.call('POST', path, { model: 'image-sangam', prompt, upstream_key: keys.ganga, ...body })
        expect(status).toBe(200)
        expect(json.br_sangam).toEqual({
          kind: 'image',
          panel: [
            { model: 'flux-1-schnell', provider: 'ganga', ok: true },
            { model: 'flux-1-dev', provider: 'ganga', ok: true },
            { model: 'sdxl', provider: null, ok: false },
          ],
          chosen: { model: 'flux-1-dev', provider: 'ganga', index: 1 },
          judge_model: 'eye-india',
          judged: true,
          reason: 'picked by the judge',
        })
        expect(providers.seen.map(({ provider }) => provider)).toEqual(['ganga', 'ganga'])
      }
      expect(indian.indus.requests).toHaveLength(3)
      expect([...indian.alpha.requests, ...indian.beta.requests]).toEqual([])
    } finally {
      await indian.stop()
    }
    const plain = await startApp({ env: providers.env })
    try {
      const reply = await plain.call('POST', path, { model: 'image-sangam', prompt, data_policy: 'india_only', upstream_key: keys.together })
      expect(codeOf(reply)).toEqual([422, 'no_route'])
    } finally {
      await plain.stop()
    }
  })

  test('PANEL-09 without an Indian vision model, the first picture is returned as not judged', async () => {
    const { status, json } = await ask({ data_policy: 'india_only', upstream_key: keys.ganga })
    expect(status).toBe(200)
    expect(json.br_sangam).toMatchObject({
      judged: false,
      judge_model: null,
      reason: 'no judge could be called',
      chosen: { model: 'flux-1-schnell', index: 0 },
    })
    expect([app.alpha, app.beta, app.indus].flatMap(({ requests }) => requests)).toEqual([])
  })

  test('PANEL-10 the panel costs the sum of its parts: three pictures and one chat call, each with a usage row', async () => {
    verdict('{"best": 1}')
    let header: string | null = null
    const spent = await spentBy(async () => {
      header = (await ask()).headers.get('x-br-cost-inr')
    })
    expect(spent).toEqual([
      ['eye', 1, judgeUinr, judgeUinr],
      ['flux-1-dev', 1, 0, 2_400_000],
      ['flux-1-schnell', 1, 0, 260_000],
      ['sdxl', 1, 0, 300_000],
    ])
    expect(spent.reduce((sum, [, , , value]) => sum + Number(value), 0)).toBe(panelUinr + judgeUinr)
    expect(Number(header)).toBe(judgeUinr / 1e6)
  })

  test('PANEL-11 a member without a credential is reported as failed, and the others continue', async () => {
    const cookie = await app.signIn()
    expect((await app.call('PUT', '/me/byok/ganga', { key: keys.ganga }, { cookie })).status).toBe(200)
    const { status, json } = await ask({ upstream_key: undefined })
    expect(status).toBe(200)
    expect(json.br_sangam.panel).toEqual([
      { model: 'flux-1-schnell', provider: 'ganga', ok: true },
      { model: 'flux-1-dev', provider: 'ganga', ok: true },
      { model: 'sdxl', provider: null, ok: false },
    ])
    await app.call('DELETE', '/me/byok/ganga', undefined, { cookie })
    expect(codeOf(await ask({ upstream_key: undefined }))).toEqual([400, 'no_route'])
  })

  test('a provider key in the request is sent to only one provider', async () => {
    // The form of the key names no provider, so it is used for the first provider that can make pictures, for every member.
    providers.answer(one => ({ body: { created: 1, data: [{ url: `https://images.example/${one.provider}` }] } }))
    expect((await ask({ upstream_key: 'a-key-of-no-shape', optimize: 'quality' })).status).toBe(200)
    expect(new Set(providers.seen.map(({ provider }) => provider)).size).toBe(1)
  })

  test('PANEL-12 a request for several pictures gets one, and each member makes one', async () => {
    const { json } = await ask({ n: 4 })
    expect(json.data).toHaveLength(1)
    expect(providers.seen.map(({ json }) => json['n'])).toEqual([1, 1, 1])
  })

  test('the reply names the parameters that the provider of the chosen picture does not support', async () => {
    verdict('{"best": 1}')
    const reply = await ask({ quality: 'high', user: 'u-1', seed: 7, partial_images: 2 })
    expect([reply.status, reply.headers.get('x-br-dropped-params')]).toEqual([200, 'quality,user,partial_images'])
    expect(providers.seen.map(({ json }) => json['seed'])).toEqual([7, 7, 7])
    expect((await ask()).headers.get('x-br-dropped-params')).toBeNull()
  })

  test('PANEL-15 the panel has its full id and its short name, and no other name', async () => {
    for (const model of ['brigade/image-sangam', 'image-sangam']) expect((await ask({ model })).json.br_sangam.kind, model).toBe('image')
    for (const model of ['other/image-sangam', 'image-sangam:', 'image-sangam:us', 'Image-Sangam'])
      expect(codeOf(await ask({ model })), model).toEqual([400, 'model_not_found'])
    const renamed = await startApp({ env: { ...providers.env, SERVICE_ID: 'atelier' } })
    try {
      expect((await renamed.call('GET', '/v1/models/atelier/image-sangam')).status).toBe(200)
      const reply = await renamed.call('POST', path, { model: 'atelier/image-sangam', prompt, upstream_key: keys.together })
      expect(reply.json.br_sangam.panel).toHaveLength(3)
    } finally {
      await renamed.stop()
    }
  })

  test('the judge gets the prompt and the pictures as URLs or data URLs, but never the key for the pictures', async () => {
    await ask()
    await ask({ response_format: 'b64_json' })
    const shown = judged().map(({ json }) => {
      const messages = json?.['messages'] as { content: { image_url?: { url: string } }[] }[] | undefined
      return messages?.[1]?.content.flatMap(part => part.image_url?.url ?? [])
    })
    expect(shown[0]).toHaveLength(3)
    expect(shown[0]?.every(url => url.startsWith('https://images.example/together/'))).toBe(true)
    expect(shown[1]).toEqual([`data:image/png;base64,${base64}`, `data:image/png;base64,${base64}`, `data:image/png;base64,${base64}`])
    for (const { raw, headers } of judged()) {
      expect(raw.toString()).toContain('marigold')
      expect(raw.toString() + JSON.stringify(headers)).not.toContain(keys.together)
    }
  })

  test('an excluded provider is not used as the judge either', async () => {
    const { json } = await ask({ exclude: ['alpha'] })
    expect(json.br_sangam).toMatchObject({ judged: false, judge_model: null })
    expect(judged()).toEqual([])
  })

  test('an allowed-models list with the panel allows its members, a cost cap applies to all parts together, and a spent budget is the error', async () => {
    const cookie = await app.signIn()
    const limited = async (rules: object) => {
      const { key, keyId } = await app.newKey()
      const changed = await app.call('PATCH', `/me/keys/${keyId}`, rules, { cookie })
      expect(changed.status).toBe(200)
      return key
    }
    verdict('{"best": 1}')
    const allowed = await ask({}, await limited({ allowed_models: ['brigade/image-sangam'] }))
    expect(allowed.json.br_sangam).toMatchObject({ judged: true, judge_model: 'eye' })
    expect(codeOf(await ask({}, await limited({ allowed_models: ['sdxl'] })))).toEqual([403, 'model_not_allowed'])
    providers.reset()
    // Each picture costs less than ₹2.50, but all three together cost more.
    expect(codeOf(await ask({}, await limited({ max_cost_inr_per_call: 2.5 })))).toEqual([403, 'call_cap_exceeded'])
    // Large pictures count with their higher price.
    expect(codeOf(await ask({ size: '2048x2048' }, await limited({ max_cost_inr_per_call: 4 })))).toEqual([403, 'call_cap_exceeded'])
    const { key } = await app.newKey({ budgetInr: 0.000001 })
    await app.call('POST', path, { model: 'sdxl', prompt, upstream_key: keys.together }, { token: key })
    providers.reset()
    expect(codeOf(await ask({}, key))).toEqual([429, 'budget_exceeded'])
    expect(providers.seen).toEqual([])
    expect(codeOf(await ask({ fallbacks: ['sdxl'] }))).toEqual([400, 'bad_request'])
  })

  test('the prompt is in no log line and no table, with or without a judge', async () => {
    verdict('{"best": 1}')
    await ask()
    failing(...upstreamModels)
    await ask()
    await app.gateway.app.limits.flushNow()
    expect(app.logLines.join('\n') + (await app.dump())).not.toContain('marigold')
  })
})
