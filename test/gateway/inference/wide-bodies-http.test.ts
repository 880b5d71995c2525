/** Bodies with very many members, and large bodies that are parsed and written in slices. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'

const members = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`
const messages = '[{"role":"user","content":"Hello there"}]'
const headers = { 'content-type': 'application/json' }

describe('wide and large bodies', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())

  const sent = (): unknown => JSON.parse(Buffer.from(app.alpha.requests.at(-1)?.raw ?? []).toString('utf8'))

  test('HARD-01 an object may have 10,000 members, and the error for more names the bound', async () => {
    for (const [path, rest] of [
      ['/v1/chat/completions', `"model":"test-model","messages":${messages}`],
      ['/v1/messages', `"model":"test-model","max_tokens":9,"messages":${messages}`],
      ['/v1/responses', '"model":"test-model","input":"Hello there"'],
      ['/v1/embeddings', '"model":"test-embed","input":"Hello there"'],
      ['/v1/me/agents', '"name":"a"'],
    ] as const) {
      const reply = await app.call('POST', path, `{${rest},"metadata":${members(10_001)}}`, { headers })
      expect([reply.status, reply.json.error.code, reply.json.error.message], path).toEqual([400, 'bad_request', expect.stringContaining('at most 10000')])
    }
    const most = await app.call('POST', '/v1/chat/completions', `{"model":"test-model","messages":${messages},"logit_bias":${members(10_000)}}`, { headers })
    expect(most.status).toBe(200)
    expect(Object.keys((sent() as { logit_bias: object }).logit_bias).length).toBe(10_000)
  })

  test('HARD-01 a body of several slices reaches the provider as it came, with repeated names and names of all sorts', async () => {
    const texts = Array.from({ length: 40 }, (_, index) => `{"role":"user","content":"${index} ${'नमस्ते \\n\\u0041😀'.repeat(8_000)}"}`)
    const body = `{"model":"x","logit_bias":{"__proto__":3,"2":1,"1":2},"messages":[${texts.join()}],"model":"test-model"}`
    const reply = await app.call('POST', '/v1/chat/completions', body, { headers })
    expect(reply.status).toBe(200)
    const passed = sent() as Record<string, unknown>
    const given = JSON.parse(body) as Record<string, unknown>
    for (const name of ['messages', 'logit_bias']) expect(JSON.stringify(passed[name]) === JSON.stringify(given[name]), name).toBe(true)
    expect(passed['model']).not.toBe('x')
  })

  test('HARD-01 a heavy body that is not JSON is refused wherever its fault is', async () => {
    const filler = `"${'a'.repeat(1_200_000)}"`
    for (const x of [`[${filler},${filler},]`, `[${filler},${filler}}`, `[${filler} ${filler}]`, `{"a":${filler},}`, `[${filler},`]) {
      const reply = await app.call('POST', '/v1/chat/completions', `{"model":"test-model","messages":${messages},"x":${x}}`, { headers })
      expect([reply.status, reply.json.error.message], x.slice(-3)).toEqual([400, 'The body is not valid JSON.'])
    }
  })
})
