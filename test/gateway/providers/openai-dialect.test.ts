import { describe, expect, test } from 'vitest'
import { type HubRequest, unknownTraits } from '../../../src/gateway/providers/dialect.ts'
import { dialectOf } from '../../../src/gateway/providers/dialects.ts'
import { classifyFailure } from '../../../src/gateway/providers/failure.ts'
import type { Provider, Quirk } from '../../../src/gateway/providers/provider.ts'
import { Secret } from '../../../src/platform/security/secret.ts'

const dialect = dialectOf('openai')
const provider = (more: Partial<Provider> = {}): Provider => ({
  id: 'p',
  name: 'P',
  dialect: 'openai',
  baseUrl: 'http://127.0.0.1:1/v1',
  auth: 'bearer',
  residency: 'global',
  byok: true,
  keyShape: null,
  quirks: [],
  platformKey: null,
  configured: true,
  ...more,
})
function request(
  text: string,
  more: { quirks?: Quirk[]; model?: string; operation?: HubRequest['operation']; auth?: Provider['auth']; rewritten?: boolean; userGiven?: true } = {},
): ReturnType<typeof dialect.request> {
  const bytes = Buffer.from(text)
  const body = JSON.parse(text) as Record<string, unknown>
  return dialect.request(
    { operation: more.operation ?? 'chat', body, bytes: more.rewritten ? null : bytes, stream: body['stream'] === true, dropped: [] },
    {
      provider: provider({ quirks: more.quirks ?? [], auth: more.auth ?? 'bearer', ...(more.userGiven ? { userGiven: true } : {}) }),
      upstreamModel: more.model ?? 'm',
      credential: new Secret('sk-1'),
      forwarded: null,
      traits: unknownTraits,
    },
  )
}
const jsonOf = (upstream: ReturnType<typeof request>): unknown => JSON.parse(String(upstream.body))

describe('the OpenAI dialect', () => {
  test('the client’s bytes are sent unchanged if nothing must change', () => {
    const odd = '{ "model":"m",\n "messages":[{"role":"user","content":"\\"model\\" 1.0"}], "temperature":1.0 }'
    expect(request(odd).body).toEqual(Buffer.from(odd))
    const stream = '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}'
    expect(request(stream).body).toEqual(Buffer.from(stream))
  })

  test('a body in which a metered key may occur twice is written again', () => {
    expect(request('{"model":"dear","messages":[],"model":"m"}').body).toBe('{"model":"m","messages":[]}')
    expect(request('{"mod\\u0065l":"dear","messages":[],"model":"m"}').body).toBe('{"model":"m","messages":[]}')
    expect(request('{"model":"m","max_tokens":9000,"max_tokens":1}').body).toBe('{"model":"m","max_tokens":1}')
  })

  test('the provider’s id of the model is set, and the other fields keep their place', () => {
    expect(request('{"a":1,"model":"m","z":{"seed":1}}', { model: 'vendor/m' }).body).toBe('{"a":1,"model":"vendor/m","z":{"seed":1}}')
  })

  test('every stream asks for usage and keeps its other stream options', () => {
    expect(jsonOf(request('{"model":"m","stream":true}'))).toEqual({ model: 'm', stream: true, stream_options: { include_usage: true } })
    expect(jsonOf(request('{"model":"m","stream":true,"stream_options":{"include_usage":false,"x":1}}'))).toEqual({
      model: 'm',
      stream: true,
      stream_options: { include_usage: true, x: 1 },
    })
    expect(jsonOf(request('{"model":"m"}'))).toEqual({ model: 'm' })
  })

  test('a stream does not ask for usage if the provider cannot report it', () => {
    expect(jsonOf(request('{"model":"m","stream":true}', { quirks: ['no-stream-usage'] }))).toEqual({ model: 'm', stream: true })
    expect(jsonOf(request('{"model":"m","stream":true,"stream_options":{"include_usage":true}}', { quirks: ['no-stream-usage'] }))).toEqual({
      model: 'm',
      stream: true,
    })
  })

  test('of two output limits, the lower one is sent under the name that the provider reads, and under both to the server of a user', () => {
    for (const [plain, newer] of [
      [1, 100_000],
      [100_000, 1],
    ]) {
      const body = JSON.stringify({ model: 'm', max_tokens: plain, max_completion_tokens: newer })
      expect(jsonOf(request(body))).toEqual({ model: 'm', max_tokens: 1 })
      expect(jsonOf(request(body, { quirks: ['max-completion-tokens'] }))).toEqual({ model: 'm', max_completion_tokens: 1 })
      expect(jsonOf(request(body, { userGiven: true }))).toEqual({ model: 'm', max_tokens: 1, max_completion_tokens: 1 })
    }
  })

  test('the newer name of the output limit becomes max_tokens, unless the provider or the server of a user reads the newer name', () => {
    const body = '{"model":"m","max_completion_tokens":5}'
    expect(jsonOf(request(body))).toEqual({ model: 'm', max_tokens: 5 })
    expect(jsonOf(request(body, { quirks: ['max-completion-tokens'] }))).toEqual({ model: 'm', max_completion_tokens: 5 })
    expect(jsonOf(request(body, { userGiven: true }))).toEqual({ model: 'm', max_completion_tokens: 5 })
    expect(jsonOf(request('{"model":"m","max_tokens":5,"max_completion_tokens":null}'))).toEqual({ model: 'm', max_tokens: 5, max_completion_tokens: null })
  })

  test('the output limit is renamed and system turns become user turns, if the provider needs it', () => {
    expect(jsonOf(request('{"model":"m","max_tokens":5}', { quirks: ['max-completion-tokens'] }))).toEqual({ model: 'm', max_completion_tokens: 5 })
    const messages = '[{"role":"system","content":"s"},{"role":"user","content":"u"}]'
    expect(jsonOf(request(`{"model":"m","messages":${messages}}`, { quirks: ['system-as-user'] }))).toEqual({
      model: 'm',
      messages: [
        { role: 'user', content: 's' },
        { role: 'user', content: 'u' },
      ],
    })
  })

  test('only the gateway’s own headers are sent, with the credential in the provider’s form', () => {
    expect(request('{"model":"m"}')).toMatchObject({ method: 'POST', url: 'http://127.0.0.1:1/v1/chat/completions' })
    expect(request('{"model":"m"}').headers).toEqual({
      'content-type': 'application/json',
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': expect.stringMatching(/^brigade\/\d/),
      authorization: 'Bearer sk-1',
    })
    expect(request('{"model":"m"}', { auth: 'api-key' }).headers).toMatchObject({ 'api-key': 'sk-1' })
    expect(request('{"model":"m"}', { auth: 'none' }).headers).not.toHaveProperty('authorization')
    expect(request('{"model":"m","input":"x"}', { operation: 'embeddings' }).url).toBe('http://127.0.0.1:1/v1/embeddings')
  })
})

describe('the class of a failure', () => {
  test.each([
    [400, '', 'client'],
    [404, '', 'client'],
    [422, '', 'client'],
    [413, '', 'declined'],
    [405, '', 'declined'],
    [451, '', 'declined'],
    [403, 'Your input was flagged for "violence"', 'client'],
    [403, 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_CSAM', 'client'],
    [401, '', 'credential'],
    [403, 'no access', 'credential'],
    [402, '', 'billing'],
    [429, '{"error":{"code":"insufficient_quota"}}', 'billing'],
    [403, 'Your credit balance is too low', 'billing'],
    [429, 'slow down', 'rate-limited'],
    [408, '', 'transient'],
    [409, '', 'transient'],
    [500, '', 'transient'],
    [529, '', 'transient'],
    [302, '', 'transient'],
  ])('a reply with status %i and text "%s" is classified as %s', (status, text, kind) => {
    expect(classifyFailure(status, {}, text)).toMatchObject({ kind, status })
  })

  test.each([
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': '0' }, 1],
    [{ 'retry-after-ms': '1500' }, 2],
    [{ 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' }, null],
    [{}, null],
    [{ 'retry-after': '1e12' }, 86_400],
  ])('a 429 with %j has a wait of %j seconds', (headers, seconds) => {
    expect(classifyFailure(429, headers, '')).toMatchObject({ retryAfterSeconds: seconds })
  })
})
