import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { adminHandler } from '../../src/operations/admin/commands/admin-commands.ts'
import type { Finding } from '../../src/operations/doctor/finding.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import type { RecordedRequest, UpstreamScript } from '../harness/upstream-server.ts'

/** The calls that `brigade doctor --probe` makes, in the process of the gateway. */
describe('doctor --probe', () => {
  let app: TestApp
  beforeAll(async () => {
    const route = (provider: string, more: object = {}) => ({ provider, input_inr_per_mtok: 1000, output_inr_per_mtok: 10_000, ...more })
    app = await startApp({
      operatorFile: urls => ({
        providers: [
          { id: 'alpha', base_url: urls.alpha, residency: 'global' },
          { id: 'beta', base_url: urls.beta, residency: 'global' },
          { id: 'keyless', base_url: urls.beta, residency: 'global' },
        ],
        models: [
          { id: 'probed-chat', tools: true, routes: [route('alpha'), route('beta'), route('keyless')] },
          { id: 'own-chat', routes: [route('alpha', { byok_only: true })] },
          { id: 'probed-embed', kind: 'embedding', routes: [{ provider: 'alpha', input_inr_per_mtok: 100 }] },
          { id: 'probed-draw', kind: 'image', inr_per_image: 5, routes: [{ provider: 'alpha' }] },
        ],
      }),
    })
  })
  afterAll(() => app.stop())
  afterEach(() => {
    app.alpha.reset()
    app.beta.reset()
  })

  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 }
  const call = { id: 'c1', type: 'function', function: { name: 'ping', arguments: '{}' } }
  const withTools = ({ json }: RecordedRequest): UpstreamScript =>
    json?.['tools'] === undefined
      ? { usage }
      : {
          body: {
            id: 'x',
            object: 'chat.completion',
            model: 'm',
            choices: [{ index: 0, message: { role: 'assistant', content: null, tool_calls: [call] }, finish_reason: 'tool_calls' }],
            usage,
          },
        }
  const probe = async (args: object): Promise<Record<string, string>> => {
    const findings = (await adminHandler(app.gateway.app)({ name: 'probe-routes', args: { maxInr: 100, maxSeconds: 60, ...args } })) as Finding[]
    return Object.fromEntries(findings.map(({ what, state, detail }) => [what, `${state}: ${detail}`]))
  }

  test('CLOUD-11 each configured route gets one token, one stream and one tool call, and the cost of each is shown', async () => {
    app.alpha.script(withTools)
    app.beta.script(request => (request.json?.['stream'] === true ? { breakAfterChunks: 2 } : { usage }))
    const said = await probe({})
    // 10 tokens of input at ₹1,000 and 2 of output at ₹10,000 a million are ₹0.03.
    expect(said['route alpha/probed-chat']).toMatch(/^ok: one token ok \d+ ms ₹0\.03, stream ok \d+ ms ₹0\.03, tool call ok \d+ ms ₹0\.03$/)
    expect(said['route beta/probed-chat']).toMatch(/^wrong: one token ok \d+ ms ₹0\.03, stream FAILED \(\w+\) .*, tool call FAILED \(no_tool_call\)/)
    expect(said['route alpha/probed-embed']).toMatch(/^ok: embedding ok \d+ ms ₹0\.0/)
    expect(said['probe']).toMatch(
      /all calls together cost about ₹0\.\d+ of at most ₹100, which the providers charge you; 1 route of pictures or sound is never tried$/,
    )
    expect(Object.keys(said).sort()).toEqual(['probe', 'route alpha/probed-chat', 'route alpha/probed-embed', 'route beta/probed-chat'])
    const bodies = app.alpha.requests.filter(({ path }) => path.endsWith('/chat/completions')).map(({ json }) => json)
    expect(bodies.map(json => [json?.['max_tokens'], json?.['stream'] ?? false, json?.['tools'] !== undefined])).toEqual([
      [1, false, false],
      [16, true, false],
      [64, false, true],
    ])
    expect(app.alpha.requests.every(({ headers }) => headers.authorization === 'Bearer alpha-platform-secret')).toBe(true)
  })

  test('CLOUD-11 nothing is sent beyond the bound of cost, and only the named routes are tried', async () => {
    const none = await probe({ maxInr: 0 })
    expect(app.alpha.requests).toEqual([])
    expect(none['probe']).toMatch(
      /^warning: all calls together cost about ₹0 of at most ₹0, .*; \d routes were not tried to the end because of the bound of cost/,
    )
    app.alpha.script(withTools)
    // The worst cost of one call is ₹1.04, so a second one does not fit while the first is charged ₹0.03 only when it ends.
    await probe({ maxInr: 1.05, only: 'alpha' })
    expect(app.alpha.requests).toHaveLength(1)
    expect(app.beta.requests).toEqual([])
  })

  test('CLOUD-11 a refused key is named, the other calls are not made, and a hanging route ends at the bound of time', async () => {
    app.alpha.script(() => ({ status: 401, body: { error: { message: 'wrong key alpha-platform-secret' } } }))
    app.beta.script(() => ({ hang: true }))
    const said = await probe({ maxSeconds: 1 })
    expect(said['route alpha/probed-chat']).toMatch(/^wrong: one token FAILED \(credential_refused\) \d+ ms ₹0$/)
    expect(JSON.stringify(said)).not.toContain('platform-secret')
    expect(said['route beta/probed-chat']).toMatch(/^wrong: one token FAILED \(timeout\)/)
  })

  test('CLOUD-11 a probe is not billed to anybody and leaves no usage', async () => {
    app.alpha.script(withTools)
    await probe({ only: 'probed-embed' })
    await app.gateway.app.limits.flushNow()
    expect(await app.dump()).not.toContain('probed-embed')
  })
})
