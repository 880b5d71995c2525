import Anthropic from '@anthropic-ai/sdk'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { durationText } from '../../../src/gateway/http/replies/rate-headers.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import { wavOf } from '../../harness/wav.ts'

/** 09:15:01 on 21 November 2026 in India. */
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const minuteEnd = '2026-11-21T03:46:00Z'
const dayEnd = '2026-11-21T18:30:00Z'
const messages = [{ role: 'user' as const, content: 'Hi' }]
const chat = { model: 'test-model', messages }
const ask = { ...chat, max_tokens: 100 }

/** The headers of a reply of an SDK, or of the error that it throws. */
async function headersOf(asked: Promise<{ response: Response }>): Promise<{ status: number; headers: Headers }> {
  try {
    const { response } = await asked
    return { status: response.status, headers: response.headers }
  } catch (error) {
    if (!(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)) throw error
    return { status: Number(error.status), headers: error.headers as Headers }
  }
}

/** Returns the seconds of a duration that Go has written. */
function secondsOf(duration: string | null): number {
  const parts = /^(?:(\d+)h)?(?:(\d+)m)?(\d+)s$/.exec(duration ?? '')
  if (parts === null) throw new Error(`no duration: ${duration}`)
  const [, hours = '0', minutes = '0', seconds = '0'] = parts
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
}

const openaiOf = (headers: Headers) => ({
  limit: headers.get('x-ratelimit-limit-requests'),
  remaining: headers.get('x-ratelimit-remaining-requests'),
  resetSeconds: secondsOf(headers.get('x-ratelimit-reset-requests')),
})
const anthropicOf = (headers: Headers) => ({
  limit: headers.get('anthropic-ratelimit-requests-limit'),
  remaining: headers.get('anthropic-ratelimit-requests-remaining'),
  reset: headers.get('anthropic-ratelimit-requests-reset'),
})

/** Returns the items of the two structured fields. */
function fieldsOf(headers: Headers): Record<string, Record<string, number>> {
  const items: Record<string, Record<string, number>> = {}
  for (const name of ['ratelimit-policy', 'ratelimit'])
    for (const item of headers.get(name)?.split(', ') ?? []) {
      const [quoted = '', ...parameters] = item.split(';')
      const policy = JSON.parse(quoted) as string
      items[policy] = { ...items[policy], ...Object.fromEntries(parameters.map(text => text.split('=')).map(([key, value]) => [key, Number(value)])) }
    }
  return items
}

const rateNames = (headers: Headers): string[] => [...headers.keys()].filter(name => /ratelimit/.test(name)).sort()
const openaiNames = ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests']
const anthropicNames = [
  'anthropic-ratelimit-requests-limit',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-requests-reset',
  'ratelimit',
  'ratelimit-policy',
]

describe('headers of rates', () => {
  const clock = movableClock(morning)
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ clock, dialects: true, operatorFile: fileWithMedia, env: { ORG_RPM: '50', CIRCUIT_FAILURES: '1000' } })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    clock.moveTo(morning)
    app.alpha.reset()
    app.others.claude.reset()
  })
  const openai = (apiKey: string) => new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey, maxRetries: 0 })
  const anthropic = (apiKey: string) => new Anthropic({ baseURL: app.baseUrl, apiKey, maxRetries: 0 })

  test('RATE-01 every reply of the OpenAI APIs shows the limit, the rest and the reset, whole, streamed, and refused', async () => {
    const { key } = await app.newKey({ rpm: 100, daily: 5000 })
    const client = openai(key)
    const sound = { headers: { 'content-type': 'audio/mpeg' }, rawStream: [new Uint8Array(100)] }
    const scripted = (script: object, made: { withResponse(): Promise<{ response: Response }> }): Promise<{ response: Response }> => {
      app.alpha.script([script])
      return made.withResponse()
    }
    const calls: readonly (readonly [status: number, make: () => Promise<{ response: Response }>])[] = [
      [200, () => client.chat.completions.create(chat).withResponse()],
      [200, () => client.chat.completions.create({ ...chat, stream: true }).withResponse()],
      [200, () => client.responses.create({ model: 'test-model', input: 'Hi' }).withResponse()],
      [200, () => client.responses.create({ model: 'test-model', input: 'Hi', stream: true }).withResponse()],
      [200, () => client.embeddings.create({ model: 'test-embed', input: 'Hi' }).withResponse()],
      [
        200,
        () => scripted({ body: { created: 1, data: [{ url: 'https://images.example/1.png' }] } }, client.images.generate({ model: 'draw', prompt: 'fox' })),
      ],
      [200, () => scripted(sound, client.audio.speech.create({ model: 'say', input: 'Hello', voice: 'v' }))],
      [200, async () => scripted({ body: { text: 'Hello' } }, client.audio.transcriptions.create({ model: 'hear', file: await toFile(wavOf(1), 'a.wav') }))],
      [404, () => client.chat.completions.create({ ...chat, model: 'nothing' }).withResponse()],
      [400, () => client.chat.completions.create({ ...chat, max_tokens: -1 }).withResponse()],
      [400, () => scripted({ status: 400, body: { error: { message: 'no' } } }, client.chat.completions.create(chat))],
    ]
    for (const [index, [status, make]] of calls.entries()) {
      const got = await headersOf(make())
      expect([index, got.status]).toEqual([index, status])
      expect(rateNames(got.headers), `${index}`).toEqual(openaiNames)
      const shown = openaiOf(got.headers)
      expect(shown, `${index}`).toMatchObject({ limit: '100', remaining: String(100 - 1 - index) })
      expect(shown.resetSeconds).toBeGreaterThan(30)
      expect(shown.resetSeconds).toBeLessThanOrEqual(59)
      const { rpm, day } = fieldsOf(got.headers)
      expect(rpm, `${index}`).toEqual({ q: 100, w: 60, r: 100 - 1 - index, t: shown.resetSeconds })
      expect(day).toMatchObject({ q: 5000, w: 86_400 })
      // Refusals before admission count against the minute and not against the day.
      expect(day?.['r']).toBe(5000 - Math.min(index + 1, 8) - (index === 10 ? 1 : 0))
      expect(Math.abs(Number(day?.['t']) - (Date.parse(dayEnd) - morning) / 1000)).toBeLessThan(30)
    }
  })

  test('RATE-01 every reply of messages shows the same under the names of Anthropic, with the reset as an instant', async () => {
    const { key } = await app.newKey({ rpm: 100, daily: 5000 })
    const client = anthropic(key)
    const calls: readonly (readonly [status: number, make: () => Promise<{ response: Response }>])[] = [
      [200, () => client.messages.create(ask).withResponse()],
      [200, () => client.messages.create({ ...ask, stream: true }).withResponse()],
      [200, () => client.messages.countTokens(chat).withResponse()],
      [404, () => client.messages.create({ ...ask, model: 'nothing' }).withResponse()],
      [400, () => client.messages.create({ ...ask, max_tokens: -1 }).withResponse()],
      [401, () => client.messages.create({ ...ask, model: 'claude-test' }).withResponse()],
    ]
    for (const [index, [status, make]] of calls.entries()) {
      const got = await headersOf(make())
      expect([index, got.status]).toEqual([index, status])
      expect(rateNames(got.headers), `${index}`).toEqual(anthropicNames)
      expect(anthropicOf(got.headers)).toEqual({ limit: '100', remaining: String(100 - 1 - index), reset: minuteEnd })
    }
  })

  test('RATE-01 a refusal shows the limit that refused, and retry-after is not before its reset', async () => {
    const busy = await app.newKey({ rpm: 2, daily: 5000 })
    for (let count = 0; count < 2; count++) expect((await headersOf(openai(busy.key).chat.completions.create(chat).withResponse())).status).toBe(200)
    for (const stream of [false, true]) {
      const refused = await headersOf(
        openai(busy.key)
          .chat.completions.create({ ...chat, stream })
          .withResponse(),
      )
      expect(refused.status).toBe(429)
      const shown = openaiOf(refused.headers)
      expect(shown).toMatchObject({ limit: '2', remaining: '0' })
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(shown.resetSeconds)
      expect(fieldsOf(refused.headers)['rpm']).toMatchObject({ q: 2, r: 0 })
    }
    const ofMessages = await headersOf(anthropic(busy.key).messages.create(ask).withResponse())
    expect([ofMessages.status, anthropicOf(ofMessages.headers)]).toEqual([429, { limit: '2', remaining: '0', reset: minuteEnd }])

    const tired = await app.newKey({ rpm: 100, daily: 1 })
    expect((await headersOf(openai(tired.key).chat.completions.create(chat).withResponse())).status).toBe(200)
    const done = await headersOf(openai(tired.key).chat.completions.create(chat).withResponse())
    expect([done.status, openaiOf(done.headers).limit, openaiOf(done.headers).remaining]).toEqual([429, '1', '0'])
    expect(openaiOf(done.headers).resetSeconds).toBeGreaterThan(14 * 3600)
    expect(Number(done.headers.get('retry-after'))).toBeGreaterThanOrEqual(openaiOf(done.headers).resetSeconds)
    expect(anthropicOf((await headersOf(anthropic(tired.key).messages.create(ask).withResponse())).headers)).toEqual({
      limit: '1',
      remaining: '0',
      reset: dayEnd,
    })
  })

  test('a key that has made no request yet shows its whole limit once it is refused for another reason, and the next minute begins again', async () => {
    const { key } = await app.newKey({ rpm: 3 })
    expect(
      openaiOf(
        (
          await headersOf(
            openai(key)
              .chat.completions.create({ ...chat, model: 'nothing' })
              .withResponse(),
          )
        ).headers,
      ).remaining,
    ).toBe('2')
    await headersOf(openai(key).chat.completions.create(chat).withResponse())
    clock.advance(60_000)
    expect(openaiOf((await headersOf(openai(key).chat.completions.create(chat).withResponse())).headers).remaining).toBe('2')
  })

  test('RATE-01 the tightest limit of a key and its organisation is shown, and a limit that does not exist is not', async () => {
    const other = await app.otherOrg('Rated Org')
    const wide = await headersOf(
      openai(other.key)
        .chat.completions.create({ ...chat, model: 'nothing' })
        .withResponse(),
    )
    expect(openaiOf(wide.headers)).toMatchObject({ limit: '50', remaining: '49' })
    expect(wide.headers.get('ratelimit-policy')).toBe('"rpm";q=50;w=60')
    // The first organisation has no limit, and its key has none.
    for (const stream of [false, true]) {
      expect(
        rateNames(
          (
            await headersOf(
              openai(app.key)
                .chat.completions.create({ ...chat, stream })
                .withResponse(),
            )
          ).headers,
        ),
      ).toEqual([])
      expect(
        rateNames(
          (
            await headersOf(
              anthropic(app.key)
                .messages.create({ ...ask, stream })
                .withResponse(),
            )
          ).headers,
        ),
      ).toEqual([])
    }
    expect(
      rateNames(
        (
          await headersOf(
            openai(app.key)
              .chat.completions.create({ ...chat, model: 'nothing' })
              .withResponse(),
          )
        ).headers,
      ),
    ).toEqual([])
    const daily = await app.newKey({ rpm: null, daily: 7 })
    const ofDay = await headersOf(openai(daily.key).chat.completions.create(chat).withResponse())
    expect(openaiOf(ofDay.headers)).toMatchObject({ limit: '7', remaining: '6' })
    expect(ofDay.headers.get('ratelimit-policy')).toBe('"day";q=7;w=86400')
    // A caller without a credential has no limits to show.
    expect(rateNames((await headersOf(openai('br-nobody').chat.completions.create(chat).withResponse())).headers)).toEqual([])
  })

  test("RATE-02 a relayed reply of claude keeps the provider's own headers, and the limits of the gateway are in RateLimit only", async () => {
    const theirs = {
      'anthropic-ratelimit-requests-limit': '4000',
      'anthropic-ratelimit-requests-remaining': '3999',
      'anthropic-ratelimit-requests-reset': '2026-11-21T03:45:02Z',
      'anthropic-ratelimit-input-tokens-remaining': '12000',
      'anthropic-ratelimit-unified-status': 'allowed',
    }
    const { key } = await app.newKey({ rpm: 4 })
    const client = new Anthropic({ baseURL: app.baseUrl, apiKey: 'sk-ant-api03-own', maxRetries: 0, defaultHeaders: { 'x-br-api-key': key } })
    const error = { type: 'error', error: { type: 'rate_limit_error', message: 'Too fast' } }
    const scripts = [{ headers: theirs }, { headers: theirs }, { status: 429, body: error, headers: { ...theirs, 'content-type': 'application/json' } }]
    for (const [index, script] of scripts.entries()) {
      app.others.claude.script([script])
      const got = await headersOf(client.messages.create({ ...ask, model: 'claude-test', stream: index === 1 }).withResponse())
      expect(got.status).toBe(index === 2 ? 429 : 200)
      for (const [name, value] of Object.entries(theirs)) expect(got.headers.get(name), `${index} ${name}`).toBe(value)
      expect(rateNames(got.headers)).toEqual([...Object.keys(theirs), 'ratelimit', 'ratelimit-policy'].sort())
      expect(fieldsOf(got.headers)['rpm']).toMatchObject({ q: 4, r: 3 - index })
    }
    // Only the provider sends headers without requests, as for a subscription.
    app.others.claude.script([{ headers: { 'request-id': 'req_up' } }])
    expect(rateNames((await headersOf(client.messages.create({ ...ask, model: 'claude-test' }).withResponse())).headers)).toEqual([
      'ratelimit',
      'ratelimit-policy',
    ])
    // Nothing is relayed when the gateway itself refuses.
    const refused = await headersOf(client.messages.create({ ...ask, model: 'claude-test' }).withResponse())
    expect([refused.status, rateNames(refused.headers), anthropicOf(refused.headers).remaining]).toEqual([429, anthropicNames, '0'])
  })

  test('a duration is written as Go writes it, and never shorter than it is', () => {
    const durations = [0, 0.2, 12, 999.4, 1000, 17_000, 16_001, 60_000, 90_000, 360_000, 3_600_000, 39_605_000]
    expect(durations.map(durationText)).toEqual(['0s', '1ms', '12ms', '1s', '1s', '17s', '17s', '1m0s', '1m30s', '6m0s', '1h0m0s', '11h0m5s'])
  })
})

test('with RATELIMIT_FIELDS=off replies carry only the headers of the format', async () => {
  const app = await startApp({ env: { RATELIMIT_FIELDS: 'off' } })
  try {
    const { key } = await app.newKey({ rpm: 5 })
    const reply = await app.call('POST', '/v1/chat/completions', chat, { token: key })
    expect(rateNames(reply.headers)).toEqual(openaiNames.filter(name => name.startsWith('x-')))
  } finally {
    await app.stop()
  }
})
