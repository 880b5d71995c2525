import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { answer, calls, type DrawnCall, env, fileOf, providerIds, providerOf, savedKeyOf, type World, worlds } from './drawn-world.ts'

/** The number of random catalogs, and the number of calls for each. */
const worldsDrawn = 6
const callsDrawn = 60

async function start(world: World): Promise<TestApp & { caller: string }> {
  const app = await startApp({ operatorFile: urls => fileOf(world, urls.alpha), env: { ...env, CIRCUIT_FAILURES: '3', CIRCUIT_OPEN_MS: '600000' } })
  app.alpha.script(request => answer(request, false))
  const cookie = await app.signIn()
  const done = async (method: string, path: string, body: object, status: number) => {
    const reply = await app.call(method, path, body, { cookie })
    expect(reply.status, `${path} ${reply.text}`).toBe(status)
    return reply.json
  }
  for (const { id, alwaysUse } of world.saved) await done('PUT', `/me/byok/${id}`, { key: savedKeyOf(id), always_use: alwaysUse }, 200)
  for (const { model, steps } of world.chains) {
    // A saved chain may name each step only once. A string step is short for a step of that model.
    const written = new Set(steps.map(step => JSON.stringify(typeof step === 'string' ? { model: step } : step)))
    const isRefused = steps.some(step => step === 'nowhere') || written.size < steps.length
    await done('PUT', `/me/routing/${model}`, { steps }, isRefused ? 400 : 200)
  }
  if (world.retention) await done('PUT', '/me/org/data-retention', { days: 7 }, 200)
  const rules = {
    ...(world.allowedModels === null ? {} : { allowed_models: world.allowedModels }),
    ...(world.allowedProviders === null ? {} : { allowed_providers: world.allowedProviders }),
  }
  const { key } = await done('POST', '/me/keys', { name: 'caller', ...rules }, 201)
  return Object.assign(app, { caller: String(key) })
}

/** Returns the outcomes of the preview and of the call in comparable form: status and message of a refusal, or all routes in the order of their dials. */
async function both(app: TestApp & { caller: string }, { path, body, isDown }: DrawnCall) {
  app.alpha.reset()
  app.alpha.script(request => answer(request, isDown))
  const preview = await app.call('POST', '/me/route/preview', body, { token: app.caller })
  const asked = app.alpha.requests.length
  const real = await app.call('POST', path, body, { token: app.caller })
  const eligible = ((preview.json.candidates ?? []) as { model: string; provider: string; eligible: boolean }[]).filter(entry => entry.eligible)
  const foretold = eligible.map(({ provider, model }) => (model.startsWith(`${provider}/`) ? model : `${provider}/${model}`))
  const called = preview.json.provider as string | undefined
  const dialed = [...new Set(app.alpha.requests.map(request => `${providerOf(request, called)}/${request.json?.['model']}`))]
  return { preview, real, foretold, dialed, asked }
}

const refusal = (json: { error?: { message?: string } }) => json.error?.message
const isByLatency = ({ given, body: { model } }: DrawnCall): boolean =>
  given.optimize === 'latency' || model === 'auto:fastest' || given.fallbacks !== undefined

/** With a caller's key, a preset in a saved chain may pick a real provider of the built-in catalog. No test may dial such a provider. */
function withoutStrayKey(call: DrawnCall, { chains }: World): DrawnCall {
  return chains.some(({ model }) => model === call.body.model) ? { ...call, body: { ...call.body, upstream_key: undefined } } : call
}

describe('the preview and the call', () => {
  test('ROUTE-61 for any catalog, organisation, request and API, the preview and the call have the same routes in order, or the same error. No excluded route is dialed', async () => {
    const seen = new Map<string, number>()
    const seed = Number(process.env['SEED'] ?? fc.sample(fc.nat(), 1)[0])
    const drawn = fc.tuple(worlds, fc.array(calls, { minLength: callsDrawn, maxLength: callsDrawn }))
    for (const [world, requests] of fc.sample(drawn, { numRuns: worldsDrawn, seed })) {
      const app = await start(world)
      try {
        for (const request of requests) {
          const call = withoutStrayKey(request, world)
          let result = await both(app, call)
          // A call by latency sometimes tries an unmeasured route first, but never twice in a row.
          if (isByLatency(call) && result.foretold[0] !== result.dialed[0]) result = await both(app, call)
          agrees(call, result, `SEED=${seed} ${JSON.stringify(world)}`)
          withinRules(call, world, result.dialed)
          const outcome = `${call.path} ${result.real.status}`
          seen.set(outcome, (seen.get(outcome) ?? 0) + 1)
        }
      } finally {
        await app.stop()
      }
    }
    // The random draw must cover served, failed and refused calls of every API.
    for (const path of ['chat/completions', 'messages', 'responses', 'embeddings', 'images/generations', 'audio/speech'])
      for (const status of [200, 400, 502]) expect([...seen.keys()], path).toContain(`/v1/${path} ${status}`)
  }, 240_000)
})

type Result = Awaited<ReturnType<typeof both>>

function agrees(call: DrawnCall, { preview, real, foretold, dialed, asked }: Result, drawn: string): void {
  const label = `${drawn}\n${call.path} ${JSON.stringify(call.body)}\npreview: ${preview.text}\nreal: ${real.status} ${real.text.slice(0, 300)}`
  expect(asked, label).toBe(0)
  if (real.status !== 200 && real.status !== 502) {
    expect([preview.status, refusal(preview.json)], label).toEqual([real.status, refusal(real.json)])
    expect(dialed, label).toEqual([])
    return
  }
  expect(preview.status, label).toBe(200)
  expect(preview.json, label).toMatchObject({ provider: foretold[0]?.split('/')[0] })
  if (real.status === 502) expect(dialed, label).toEqual(foretold)
  else expect(dialed, label).toEqual(foretold.slice(0, 1))
  const { headers } = real
  if (real.status === 200) expect(headers.get('x-br-provider'), label).toBe(preview.json.provider)
  if (real.status === 502) return
  expect([headers.get('x-br-auto-preset'), headers.get('x-br-route-capability')], label).toEqual([preview.json.preset ?? null, preview.json.capability ?? null])
  for (const name of ['x-br-auto-model', 'x-br-route-model']) if (headers.has(name)) expect(headers.get(name), label).toBe(preview.json.model)
  const reason = headers.get('x-br-auto-reason') ?? headers.get('x-br-route-reason')
  if (reason !== null) expect(preview.json.reason, label).toBe(reason)
}

const names: readonly string[] = providerIds

/** Checks the rules from the drawn values alone, without using the router. */
function withinRules({ given, body }: DrawnCall, world: World, dialed: readonly string[]): void {
  for (const route of dialed) {
    const [provider = '', ...rest] = route.split('/')
    const label = `${route} for ${JSON.stringify(body)}`
    if (given.data_policy !== undefined) expect(world.residencies[names.indexOf(provider)], label).toBe('india')
    expect(given.exclude ?? [], label).not.toContain(provider)
    expect(given.exclude ?? [], label).not.toContain(`${provider}/${rest.join('/')}`)
    if (given.provider !== undefined) expect(provider, label).toBe(given.provider)
    if (world.allowedProviders !== null) expect(world.allowedProviders, label).toContain(provider)
    if (world.allowedModels?.some(id => !id.startsWith('auto'))) expect(world.allowedModels, label).toContain(rest.join('/'))
    const gated = world.chats[Number(rest[0]?.slice(1)) - 1]?.gated ?? false
    if (rest.length === 1 && /^c\d$/.test(rest[0] ?? '')) expect(gated && !world.retention, label).toBe(false)
  }
}
