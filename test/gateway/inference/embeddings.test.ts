import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { loadCatalog } from '../../../src/gateway/catalog/loading/load.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

const sameName = {
  id: 'same-name',
  kind: 'embedding',
  routes: [{ provider: 'alpha', upstream_model: 'same-name', input_inr_per_mtok: 4, output_inr_per_mtok: 0, source: 'test', as_of: '2026-01-01' }],
}

describe('embeddings by the real SDK', () => {
  let app: TestApp
  let client: OpenAI
  beforeAll(async () => {
    app = await startApp({
      dialects: true,
      env: { SANDBOX: 'on', VLLM_BASE_URL: 'http://127.0.0.1:9/v1', CIRCUIT_FAILURES: '1000' },
      operatorFile(urls) {
        const file = defaultOperatorFile(urls)
        return { ...file, models: [...file.models, sameName] }
      },
    })
    client = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  test("EMB-01 EMB-10 the SDK's own request for base64 is forwarded, and the relayed reply gives the same vectors as floats", async () => {
    const vector = Float32Array.from({ length: 1024 }, (_, at) => at / 1024)
    app.alpha.script([
      {
        body: {
          object: 'list',
          model: 'alpha-upstream',
          data: [{ object: 'embedding', index: 0, embedding: Buffer.from(vector.buffer).toString('base64') }],
          usage: { prompt_tokens: 4, total_tokens: 4 },
        },
      },
    ])
    const reply = await client.embeddings.create({ model: 'test-embed', input: ['नमस्ते'], dimensions: 1024 })
    expect(app.alpha.requests[0]?.json).toEqual({ model: 'alpha-upstream', input: ['नमस्ते'], dimensions: 1024, encoding_format: 'base64' })
    expect(reply.data[0]?.embedding).toEqual([...vector])
    expect(reply.usage).toEqual({ prompt_tokens: 4, total_tokens: 4 })
    // The price is ₹4 for a million tokens.
    expect((await usageRows(app))[0]).toMatchObject({ kind: 'embeddings', promptTokens: 4n, completionTokens: 0n, costUinr: 16n, estimated: false })
  })

  test('a reply with hundreds of thousands of numbers is relayed with the catalog id of the model, and with usage if the provider left it out', async () => {
    const vector = Array.from({ length: 1536 }, (_, at) => at / 1536)
    const data = Array.from({ length: 256 }, (_, index) => ({ object: 'embedding', index, embedding: vector }))
    app.alpha.script([
      { body: { object: 'list', data, model: 'alpha-upstream' } },
      { body: { object: 'list', data, model: 'alpha-upstream', usage: { prompt_tokens: 4, total_tokens: 4 } } },
    ])
    const ask = () => app.call('POST', '/v1/embeddings', { model: 'test-embed', input: ['one'] })
    const estimated = await ask()
    expect(estimated.json).toEqual({
      object: 'list',
      data,
      model: 'test-embed',
      usage: { prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    })
    expect((await usageRows(app))[0]).toMatchObject({ estimated: true })
    const told = await ask()
    expect(told.json).toEqual({ object: 'list', data, model: 'test-embed', usage: { prompt_tokens: 4, total_tokens: 4 } })
    expect((await usageRows(app))[0]).toMatchObject({ promptTokens: 4n, estimated: false })
  })

  test('EMB-06 EMB-07 router fields from the SDK are obeyed and not forwarded, and with india_only the Indian route serves', async () => {
    await client.embeddings.create({
      model: 'test-embed',
      input: 'one',
      ...{ data_policy: 'india_only', exclude: ['alpha'], optimize: 'latency', image_optimize: 'off' },
    })
    expect(Object.keys(app.indus.requests[0]?.json ?? {}).sort()).toEqual(['encoding_format', 'input', 'model'])
  })

  test('EMB-06 a request is sent byte for byte when the provider has the same model name, except that router fields are removed', async () => {
    const send = async (text: string): Promise<string | undefined> => {
      const reply = await fetch(`${app.baseUrl}/v1/embeddings`, {
        method: 'POST',
        headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
        body: text,
      })
      expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
      return app.alpha.requests.at(-1)?.raw.toString()
    }
    const plain = '{ "model": "same-name",  "input": ["नमस्ते"] }'
    expect(await send(plain)).toBe(plain)
    const sent = await send('{ "model": "same-name", "provider": "alpha", "optimize": "price", "input": ["a"], "exclude": ["beta"], "data_policy": null }')
    expect(JSON.parse(sent ?? '')).toEqual({ model: 'same-name', input: ['a'] })
  })

  test('token numbers instead of texts are refused with advice', async () => {
    for (const input of [
      [1, 2, 3],
      [[1, 2], [3]],
    ])
      await expect(client.embeddings.create({ model: 'test-embed', input: input as number[] })).rejects.toMatchObject({
        status: 400,
        code: 'bad_request',
        message: expect.stringContaining('send the text itself'),
      })
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('a new installation serves embeddings, with the same vectors as floats and as base64', async () => {
    const bare = await client.embeddings.create({ model: 'sandbox-embed', input: ['red apple', 'green apple'] })
    const floats = await client.embeddings.create({ model: 'sandbox-embed', input: ['red apple', 'green apple'], encoding_format: 'float' })
    expect(bare.data.map(({ embedding }) => embedding.length)).toEqual([1024, 1024])
    expect(bare.data[1]?.embedding[5]).toBeCloseTo(floats.data[1]?.embedding[5] ?? 9, 6)
  })

  test('a provider whose dialect has no embeddings is refused before it is called, and is skipped in a chain', async () => {
    for (const model of ['claude/embed-1', 'gem/embed-1', 'resp/embed-1']) {
      const reply = await app.call('POST', '/v1/embeddings', { model, input: 'one', upstream_key: 'sk-mine' })
      expect([reply.status, reply.json.error.code], model).toEqual([400, 'no_route'])
      expect(reply.json.error.message).toMatch(/has no embedding API/)
    }
    for (const model of ['openai-model', 'anthropic-model', 'gemini-model', 'responses-model']) {
      const reply = await app.call('POST', '/v1/embeddings', { model, input: 'one' })
      expect([reply.status, reply.json.error.code], model).toEqual([400, 'no_route'])
    }
    for (const path of ['/v1/audio/speech', '/v1/embeddings']) {
      const reply = await app.call('POST', path, { model: 'claude/some-model', input: 'one', upstream_key: 'sk-mine' })
      expect([reply.status, reply.json.error.code], path).toEqual([400, 'no_route'])
    }
    const chained = await app.call('POST', '/v1/embeddings', {
      model: 'test-embed',
      input: 'one',
      upstream_key: 'sk-mine',
      fallbacks: [{ model: 'claude/embed-1' }, { model: 'test-embed', provider: 'alpha' }],
    })
    expect([chained.status, chained.headers.get('x-br-provider')]).toEqual([200, 'alpha'])
    for (const upstream of [app.others?.claude, app.others?.gem, app.others?.resp]) expect(upstream?.requests).toHaveLength(0)
  })
})

test('the operator cannot configure a route for embeddings or audio whose dialect does not support them', async () => {
  const { mkdtempSync, rmSync, writeFileSync } = await import('node:fs')
  const { tmpdir } = await import('node:os')
  const { join } = await import('node:path')
  const { loadConfig } = await import('../../../src/platform/config.ts')
  const folder = mkdtempSync(join(tmpdir(), 'brigade-embed-'))
  const file = join(folder, 'brigade.config.json')
  const load = (kind: string, more: object) => {
    writeFileSync(
      file,
      JSON.stringify({
        providers: [{ id: 'gem', dialect: 'gemini', base_url: 'http://127.0.0.1:9/v1' }],
        models: [{ id: 'odd', kind, routes: [{ provider: 'gem', ...more }] }],
      }),
    )
    return () => loadCatalog({ config: loadConfig({ CONFIG_FILE: file, DATA_DIR: folder }), operatorFile: file })
  }
  expect(load('embedding', { input_inr_per_mtok: 1 })).toThrow(/gem.*gemini/)
  expect(load('speech', { inr_per_million_characters: 1 })).toThrow(/gemini/)
  expect(load('chat', { input_inr_per_mtok: 1, output_inr_per_mtok: 1 })).not.toThrow()
  rmSync(folder, { recursive: true })
})
