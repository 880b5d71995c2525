/** The calls of one person must not move other organisations to a more expensive route. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/platform/clock.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import type { UpstreamScript } from '../../harness/upstream-server.ts'

const bad = 'make it fail'
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
const brokenCall = {
  body: {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{"a":' } }] },
      },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
  },
}

/** One model on three providers: alpha at ₹50, beta at ₹100, indus at ₹150. */
function file(urls: { alpha: string; beta: string; indus: string }): object {
  const provider = (id: string, base_url: string) => ({ id, base_url, residency: 'global', auth: 'bearer' })
  const route = (id: string, inr: number) => ({ provider: id, input_inr_per_mtok: inr, output_inr_per_mtok: 0, source: 'test', as_of: '2026-01-01' })
  return {
    providers: [provider('alpha', urls.alpha), provider('beta', urls.beta), provider('indus', urls.indus)],
    models: [{ id: 'm', kind: 'chat', context_length: 8000, tools: true, routes: [route('alpha', 50), route('beta', 100), route('indus', 150)] }],
  }
}

describe('averages that organisations share', () => {
  let app: TestApp
  /** Keys of three organisations of one person, and of one organisation each of two other persons. */
  let attackers: readonly string[]
  let second: string
  let third: string
  let elapsedMs = 0
  const clock: Clock = { ...systemClock, monotonicMs: () => elapsedMs }
  beforeEach(async () => {
    app = await startApp({ operatorFile: file, clock, env: { CIRCUIT_FAILURES: '100' } })
    const cookie = await app.signIn()
    const keys: string[] = []
    for (const name of ['One more', 'And another']) {
      const made = await app.call('POST', '/me/orgs', { name }, { cookie })
      expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
      keys.push((await app.call('POST', '/me/keys', { name }, { cookie })).json.key)
    }
    attackers = [app.key, ...keys]
    second = (await app.otherOrg('Second')).key
    third = (await app.otherOrg('Third')).key
  })
  afterEach(() => app.stop())

  const ask = (token: string, more: object = {}, content = 'hello') =>
    app.call('POST', '/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content }], ...more }, { token })
  const servedBy = async (token: string, more: object) => (await ask(token, more)).headers.get('x-br-provider')
  /** The provider fails in this way for requests that ask for it, and serves all other requests. */
  const failsFor = (script: UpstreamScript) => app.alpha.script(request => (request.raw.includes(bad) ? script : {}))
  const modes = [{ optimize: 'auto' }, { optimize: 'uptime' }, { optimize_weights: { uptime: 1 } }, { optimize_weights: { throughput: 1 } }]

  const failures: readonly (readonly [string, UpstreamScript])[] = [
    ['an error', { status: 500, body: 'oh' }],
    ['nothing', { reset: true }],
    ['too many', { status: 429, body: 'slow down' }],
  ]
  test.each(failures)('HARD-08 %s that one person causes moves no other organisation to a more expensive route', async (_what, script) => {
    for (const provider of ['alpha', 'beta', 'indus']) for (const token of [second, third]) expect((await ask(token, { provider })).status).toBe(200)
    failsFor(script)
    // One failure comes first, and then many.
    await ask(attackers[0] ?? '', { provider: 'alpha' }, bad)
    for (const mode of modes) expect(await servedBy(second, mode), JSON.stringify(mode)).toBe('alpha')
    for (const token of attackers) for (let count = 0; count < 5; count++) await ask(token, { provider: 'alpha' }, bad)
    for (const mode of modes) for (const token of [second, third]) expect(await servedBy(token, mode), JSON.stringify(mode)).toBe('alpha')
    // The organisation itself avoids the route, because it uses its own measurements.
    expect(await servedBy(attackers[0] ?? '', { optimize: 'auto' })).not.toBe('alpha')
  })

  test('HARD-08 an organisation without calls is not affected by the failures of one person, but by those of two persons', async () => {
    failsFor({ status: 500, body: 'oh' })
    for (const token of attackers) for (let count = 0; count < 5; count++) await ask(token, { provider: 'alpha' }, bad)
    expect(await servedBy(third, { optimize: 'uptime' })).toBe('alpha')
    await ask(second, { provider: 'alpha' }, bad)
    expect(await servedBy(third, { optimize: 'uptime' })).not.toBe('alpha')
    expect(await servedBy(third, { optimize: 'auto' })).not.toBe('alpha')
  })

  test('HARD-08 slow calls of one person do not make a route slow for others', async () => {
    app.alpha.script(({ raw }) => {
      elapsedMs += raw.includes(bad) ? 60_000 : 10
      return {}
    })
    for (const token of attackers) for (let count = 0; count < 3; count++) expect((await ask(token, { provider: 'alpha' }, bad)).status).toBe(200)
    for (const mode of [{ optimize: 'auto' }, { optimize: 'latency' }]) expect(await servedBy(second, mode)).toBe('alpha')
  })

  test("HARD-08 when one person's prompts break tool calls, other organisations do not avoid the route", async () => {
    failsFor(brokenCall)
    for (const token of attackers) for (let count = 0; count < 6; count++) expect((await ask(token, { provider: 'alpha', tools }, bad)).status).toBe(200)
    const agentRoute = async (token: string) => (await ask(token, { model: 'auto:agent', tools })).headers.get('x-br-provider')
    expect(await agentRoute(second)).toBe('alpha')
    expect(await agentRoute(attackers[0] ?? '')).not.toBe('alpha')
  })
})
