import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const hello = [{ role: 'user', content: 'Hello there' }]
interface Candidate {
  readonly model: string
  readonly provider: string | null
  readonly eligible: boolean
  readonly why: string
}

describe('POST /me/route/preview', () => {
  let app: TestApp
  let owner: string
  beforeAll(async () => {
    app = await startApp({ env: { CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: '600000' } })
    owner = await app.signIn()
    const saved = await app.call('PUT', '/me/byok/beta', { key: 'sk-saved-beta-key-0001', always_use: false }, { cookie: owner })
    expect(saved.status).toBe(200)
    await app.call('PUT', '/me/routing/same-id', { steps: [{ model: 'test-model', provider: 'indus' }, 'alpha-only'] }, { cookie: owner })
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of all()) upstream.reset()
  })
  const all = () => [app.alpha, app.beta, app.indus]
  const preview = (body: object, token: string | null = app.key) => app.call('POST', '/me/route/preview', body, { token })
  const chat = (body: object) => app.call('POST', '/v1/chat/completions', body)
  const why = async (body: object, provider: string, model = 'test-model') => {
    const { candidates } = (await preview(body)).json as { candidates: Candidate[] }
    const found = candidates.find(candidate => candidate.provider === provider && candidate.model === model)
    return found && `${found.eligible ? 'yes' : 'no'}: ${found.why}`
  }

  test('ROUTE-60 SHAPE-37 the preview returns model, provider, reason and every route with its reason. No provider is dialed, and nothing is counted', async () => {
    const before = (await app.call('GET', '/v1/usage')).json.totals
    const reply = await preview({ model: 'test-model', messages: hello })
    expect(reply.status).toBe(200)
    expect(reply.json).toEqual({
      model: 'test-model',
      provider: 'alpha',
      reason: 'optimize_price',
      candidates: [
        { model: 'test-model', provider: 'alpha', eligible: true, why: expect.stringContaining('dialed first') },
        { model: 'test-model', provider: 'beta', eligible: true, why: expect.stringContaining('number 2') },
        { model: 'test-model', provider: 'indus', eligible: true, why: expect.stringContaining('number 3') },
      ],
    })
    const picked = (await preview({ model: 'auto:sovereign' })).json
    expect(picked).toMatchObject({ model: 'test-model', provider: 'indus', preset: 'sovereign', reason: 'cheapest_india_resident' })
    expect(all().map(upstream => upstream.requests.length)).toEqual([0, 0, 0])
    const after = (await app.call('GET', '/v1/usage')).json.totals
    expect(after).toEqual(before)
    expect(app.logLines.join('\n')).not.toContain('Hello there')
  })

  test('the preview names the reason against a route: pin, residency, exclusion, missing key, another company’s key, another pick, an open circuit', async () => {
    expect(await why({ model: 'test-model', provider: 'beta' }, 'alpha')).toMatch(/^no: another provider is pinned/)
    expect(await why({ model: 'test-model', data_policy: 'india_only' }, 'alpha')).toMatch(/^no: not proven to be in India/)
    expect(await why({ model: 'test-model', exclude: ['alpha'] }, 'alpha')).toMatch(/^no: excluded/)
    expect(await why({ model: 'test-model', fallbacks: ['byok-model', 'test-model'] }, 'alpha', 'byok-model')).toMatch(
      /^no: runs on your own provider key only/,
    )
    expect(await why({ model: 'test-model', upstream_key: 'sk-mine' }, 'indus')).toMatch(/^no: upstream_key goes to one provider only/)
    expect(await why({ model: 'auto:cheapest' }, 'beta', 'mute-model')).toBeUndefined()
    expect(await why({ model: 'auto:cheapest' }, 'mute', 'mute-model')).toMatch(/^no: another model was picked: "global-only"/)
    const { candidates } = (await preview({ model: 'test-model', fallbacks: ['nowhere', { model: 'alpha-only', provider: 'beta' }, 'alpha-only'] })).json
    expect(candidates.map((candidate: Candidate) => [candidate.model, candidate.provider, candidate.eligible])).toEqual([
      ['alpha-only', 'alpha', true],
      ['nowhere', null, false],
      ['alpha-only', 'beta', false],
    ])
    app.alpha.script(Array.from({ length: 3 }, () => ({ status: 500 })))
    for (let i = 0; i < 3; i++) await chat({ model: 'global-only', messages: hello, provider: 'alpha' })
    const open = (await preview({ model: 'global-only' })).json.candidates
    expect(open.at(-1)).toMatchObject({ provider: 'alpha', eligible: true, why: expect.stringContaining('circuit is open') })
  })

  test('messages and tools are optional, and the preview uses them when the body contains them', async () => {
    expect((await preview({ model: 'test-embed' })).json).toMatchObject({ model: 'test-embed', provider: 'alpha' })
    expect((await preview({ model: 'test-embed', input: ['a'], data_policy: 'india_only' })).json.provider).toBe('indus')
    expect((await preview({ model: 'auto:cheapest' })).json.model).toBe('global-only')
    const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]
    expect((await preview({ model: 'auto:cheapest', messages: hello, tools })).json.model).toBe('test-model')
    expect((await preview({ model: 'test-model', messages: 'no list' })).json.error.code).toBe('bad_request')
  })

  test('ROUTE-62 the preview accepts a key, an agent token or a signed-in person, and answers 401 no_session to everybody else', async () => {
    const { token } = await app.newAgent('asker')
    const member = (await app.newMember('member')).cookie
    for (const options of [{ token: app.key }, { token }, { cookie: owner }, { cookie: member }])
      expect((await app.call('POST', '/me/route/preview', { model: 'test-model' }, options)).json.provider).toBe('alpha')
    const nobody = await preview({ model: 'test-model' }, null)
    expect([nobody.status, nobody.json.error.code]).toEqual([401, 'no_session'])
    const wrong = await preview({ model: 'test-model' }, 'br_live_wrong')
    expect([wrong.status, wrong.json.error.code]).toEqual([401, 'invalid_api_key'])
  })

  const step = fc.record(
    { model: fc.constantFrom('test-model', 'alpha-only', 'byok-model', 'nowhere', 'auto:sovereign', 'beta/test-model') },
    { noNullPrototype: true },
  )
  const bodies = fc.record(
    {
      model: fc.constantFrom(
        'test-model',
        'same-id',
        'global-only',
        'byok-model',
        'test-embed',
        'nowhere',
        'beta/test-model',
        'beta/unlisted',
        'alpha/unsaved',
        'auto',
        'auto:sovereign',
        'auto:cheapest',
        'auto:best',
        'auto:long-context',
        'claude-none',
      ),
      messages: fc.constant(hello),
      optimize: fc.constantFrom('price', 'uptime', 'auto', 'cheap'),
      provider: fc.constantFrom('alpha', 'beta', 'indus', 'murky', 'nobody', 'byoe:none'),
      data_policy: fc.constant('india_only'),
      exclude: fc.subarray(['alpha', 'beta/test-model', 'indus']),
      upstream_key: fc.constant('sk-of-the-caller'),
      fallbacks: fc.array(step, { maxLength: 3 }),
    },
    { requiredKeys: ['model', 'messages'], noNullPrototype: true },
  )

  test('ROUTE-61 the preview agrees with the real call: the same provider, or the same status and code', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async drawn => {
        // With a caller's key, a preset or a model of Anthropic could use a real provider. No test may dial such a provider.
        const { upstream_key, ...rest } = drawn
        const body = upstream_key === undefined || /^(auto|claude)/.test(drawn.model) || drawn.fallbacks !== undefined ? rest : drawn
        const [foretold, real] = [await preview(body), await chat(body)]
        const outcome = real.status === 200 ? real.headers.get('x-br-provider') : [real.status, real.json.error.code, real.json.error.message]
        expect(foretold.status === 200 ? foretold.json.provider : [foretold.status, foretold.json.error.code, foretold.json.error.message]).toEqual(outcome)
        if (real.status === 200 && real.headers.has('x-br-auto-model')) expect(foretold.json.model).toBe(real.headers.get('x-br-auto-model'))
        if (real.status === 200) expect(foretold.json.candidates[0]).toMatchObject({ provider: foretold.json.provider, eligible: true })
      }),
      { numRuns: propertyRuns(150) },
    )
  })
})
