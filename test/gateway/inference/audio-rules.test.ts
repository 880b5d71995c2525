import { beforeAll, describe, expect, test } from 'vitest'
import type { TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { audioSuite, clip, codeOf, formOf, perSecondUinr, piece, sound, transcript } from './audio-suite.ts'

describe('the rules for audio calls', () => {
  const suite = audioSuite()
  const { listen, postForm, speak } = suite
  let app: TestApp
  beforeAll(() => {
    app = suite.app()
  })

  test('AUD-04 on both audio endpoints, an unknown model is 400 model_not_found and a model of another kind is 400 no_route', async () => {
    const speech = await speak({ model: 'nothing' })
    expect([speech.status, await codeOf(speech)]).toEqual([400, 'model_not_found'])
    const form = await postForm([
      ['file', clip()],
      ['model', 'nothing'],
    ])
    expect([form.status, form.json.error.code]).toEqual([400, 'model_not_found'])
    const wrong = await speak({ model: 'test-listen' })
    expect([wrong.status, await codeOf(wrong)]).toEqual([400, 'no_route'])
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-speak'],
        ])
      ).json.error.code,
    ).toBe('no_route')
  })

  test('AUD-05 a missing file or input, or an invalid field, is 400 bad_request that names it, and no provider is called', async () => {
    const file = ['file', clip()] as const
    const model = ['model', 'test-listen'] as const
    const forms = [
      [[model], '"file"'],
      [[['file', ''], model], '"file"'],
      [[['file', new Blob([])], model], '"file"'],
      [[file], '"model"'],
      [[file, ['file', clip()], model], 'one file'],
      [[file, model, ['model', 'other']], '"model"'],
      [[file, model, ['temperature', 'hot']], '"temperature"'],
      [[file, model, ['prompt', 'x'.repeat(20_000)], ['keywords', 'y'.repeat(20_000)]], 'more than 32000 characters. Send a shorter "prompt"'],
      [[file, model, ['prompt', '👋'.repeat(31_000)], ['keywords', 'y'.repeat(1000)]], 'more than 32000 characters. Send a shorter "prompt"'],
      [[file, model, ...Array.from({ length: 5 }, () => ['known_speaker_references[]', 'data:,'] as const)], '"known_speaker_references"'],
      [[file, model, ['stream', 'maybe']], '"stream"'],
      [[file, model, ['exclude', '[']], '"exclude"'],
      [[file, model, ['data_policy', 'moon']], '"data_policy"'],
    ] as const
    for (const [fields, named] of forms) {
      const reply = await postForm(fields)
      expect([reply.status, reply.json.error.code, reply.json.error.message.includes(named)], named + reply.text).toEqual([400, 'bad_request', true])
    }
    const bodies = [
      [{ input: undefined }, '"input"'],
      [{ input: '' }, '"input"'],
      [{ input: 5 }, '"input"'],
      [{ input: 'x'.repeat(4097) }, '"input" has more than 4096 characters'],
      [{ input: '👋'.repeat(4097) }, '"input" has more than 4096 characters'],
      [{ model: undefined }, '"model"'],
      [{ voice: '' }, '"voice"'],
      [{ speed: 9 }, '"speed"'],
      [{ response_format: 'midi' }, '"response_format"'],
      [{ stream_format: 'x' }, '"stream_format"'],
      [{ instructions: 1 }, '"instructions"'],
      [{ instructions: 'x'.repeat(4097) }, '"instructions" has more than 4096 characters'],
    ] as const
    for (const [body, named] of bodies) {
      const reply = await app.call('POST', '/v1/audio/speech', { model: 'test-speak', input: 'Hello', voice: 'hf_beta', ...body })
      expect([reply.status, reply.json.error.code, reply.json.error.message.includes(named)], named).toEqual([400, 'bad_request', true])
    }
    const json = await app.call('POST', '/v1/audio/transcriptions', { model: 'test-listen' })
    expect([json.status, json.json.error.code]).toEqual([415, 'unsupported_media_type'])
    const large = await postForm([
      ['file', new Blob([new Uint8Array(600_000)])],
      ['model', 'test-listen'],
    ])
    expect([large.status, large.json.error.code]).toEqual([413, 'payload_too_large'])
    expect(app.alpha.requests).toHaveLength(0)
  })

  test('AUD-06 credential, rate, daily limit and budgets apply as for chat, and refuse a call before a provider is called', async () => {
    for (const token of [null, 'br-wrong']) {
      expect([
        (
          await postForm(
            [
              ['file', clip()],
              ['model', 'test-listen'],
            ],
            token,
          )
        ).status,
        (await speak({}, { token })).status,
      ]).toEqual([401, 401])
    }
    const { key: rated } = await app.newKey({ rpm: 1 })
    app.alpha.script(() => sound([piece(1)]))
    expect((await speak({}, { token: rated })).status).toBe(200)
    const limited = await speak({}, { token: rated })
    expect([limited.status, await codeOf(limited)]).toEqual([429, 'rate_limit_exceeded'])
    const { key: daily } = await app.newKey({ daily: 1 })
    expect((await speak({}, { token: daily })).status).toBe(200)
    expect(await codeOf(await speak({}, { token: daily }))).toBe('daily_limit_reached')
    app.alpha.reset()
    // ₹0.05 pays for 5 seconds or 1,000 characters. The call that spends it is the last one.
    listen({ text: 'hello', usage: { type: 'duration', seconds: 5 } })
    const { key: poor } = await app.newKey({ budgetInr: 0.05 })
    expect(
      (
        await postForm(
          [
            ['file', clip(5)],
            ['model', 'test-listen'],
          ],
          poor,
        )
      ).status,
    ).toBe(200)
    app.alpha.reset()
    const refused = await postForm(
      [
        ['file', clip(1)],
        ['model', 'test-listen'],
      ],
      poor,
    )
    expect([refused.status, refused.json.error.code, refused.json.spent_inr]).toEqual([429, 'budget_exceeded', 0.05])
    const silent = await speak({}, { token: poor })
    expect([silent.status, await codeOf(silent)]).toEqual([429, 'budget_exceeded'])
    expect(app.alpha.requests).toHaveLength(0)
    const agent = await app.newAgent('listener')
    await app.setBudget('agent', agent.id, 0.00025)
    app.alpha.script([sound([piece(1)])])
    await (await speak({}, { token: agent.token })).arrayBuffer()
    expect(await codeOf(await speak({}, { token: agent.token }))).toBe('agent_budget_exceeded')
    expect(
      (
        await postForm(
          [
            ['file', clip(3)],
            ['model', 'test-listen'],
          ],
          agent.token,
        )
      ).json.error.code,
    ).toBe('agent_budget_exceeded')
    // The hold of a call with a cost cap uses the measured length.
    const { key: capped, keyId } = await app.newKey()
    expect((await app.call('PATCH', `/me/keys/${keyId}`, { max_cost_inr_per_call: 0.03 }, { cookie: await app.signIn() })).status).toBe(200)
    expect(
      (
        await postForm(
          [
            ['file', clip(4)],
            ['model', 'test-listen'],
          ],
          capped,
        )
      ).json.error.code,
    ).toBe('call_cap_exceeded')
    expect(await codeOf(await speak({ input: 'x'.repeat(601) }, { token: capped }))).toBe('call_cap_exceeded')
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('both endpoints obey the router fields of a form and remove them', async () => {
    app.indus.script([{ body: transcript }])
    const india = await postForm([
      ['file', clip()],
      ['model', 'test-listen'],
      ['data_policy', 'india_only'],
      ['optimize', 'latency'],
    ])
    expect([india.status, india.headers.get('x-br-provider')]).toEqual([200, 'indus'])
    expect((await formOf(app.indus)).fields).toEqual([['model', 'indus-listen']])
    const none = await speak({ data_policy: 'india_only' })
    expect([none.status, await codeOf(none)]).toEqual([422, 'no_route'])
    app.beta.script([{ body: transcript }, { body: transcript }])
    for (const exclude of [
      [['exclude', '["alpha"]']],
      [
        ['exclude', 'alpha'],
        ['exclude', 'indus'],
      ],
    ] as const)
      expect((await postForm([['file', clip()], ['model', 'test-listen'], ...exclude])).headers.get('x-br-provider')).toBe('beta')
    app.beta.script([sound([piece(1)])])
    expect((await speak({ exclude: ['alpha'] })).headers.get('x-br-provider')).toBe('beta')
    expect(app.beta.requests.at(-1)?.json).toEqual({ model: 'beta-speak', input: 'Hello', voice: 'hf_beta' })
  })

  test("on the caller's own key the value is recorded and nothing is charged", async () => {
    listen()
    expect(
      (
        await postForm([
          ['file', clip()],
          ['model', 'test-listen'],
          ['provider', 'alpha'],
          ['upstream_key', 'sk-mine'],
        ])
      ).status,
    ).toBe(200)
    expect(app.alpha.requests[0]?.headers['authorization']).toBe('Bearer sk-mine')
    expect((await usageRows(app))[0]).toMatchObject({ byok: true, costUinr: 0n, valueUinr: 3n * perSecondUinr })
  })

  test('a call with an Idempotency-Key is made once, with any boundary of its form', async () => {
    listen()
    const once = () =>
      postForm(
        [
          ['file', clip()],
          ['model', 'test-listen'],
        ],
        app.key,
        { 'idempotency-key': 'clip-1' },
      )
    expect((await once()).status).toBe(200)
    expect((await once()).json.error.code).toBe('idempotency_replayed')
    const other = await postForm(
      [
        ['file', clip(2)],
        ['model', 'test-listen'],
      ],
      app.key,
      { 'idempotency-key': 'clip-1' },
    )
    expect([other.status, other.json.error.code]).toEqual([422, 'idempotency_mismatch'])
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('logs contain neither texts nor recordings', () => {
    const lines = app.logLines.join('\n')
    for (const word of ['Krutrim', 'Hello', 'recording', 'slowly']) expect(lines).not.toContain(word)
  })
})
