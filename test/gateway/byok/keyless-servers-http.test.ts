import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultOperatorFile, startApp, type TestApp } from '../../harness/app.ts'
import { usageRows } from '../../harness/usage-rows.ts'

/** Adds two servers of the operator that the gateway calls without a key. Their entries do not set `byok`. */
const operatorFile = (urls: { alpha: string; beta: string; indus: string }) => {
  const file = defaultOperatorFile(urls)
  const model = (id: string, provider: string) => ({
    id,
    kind: 'chat',
    context_length: 100_000,
    routes: [{ provider, upstream_model: 'm', input_inr_per_mtok: 10, output_inr_per_mtok: 40, source: 'test', as_of: '2026-01-01' }],
  })
  return {
    ...file,
    providers: [
      ...file.providers,
      { id: 'ownbox', base_url: urls.alpha, residency: 'global', auth: 'none' },
      { id: 'optbox', base_url: urls.alpha, residency: 'global', key_optional: true },
    ],
    models: [...file.models, model('box-model', 'ownbox'), model('opt-model', 'optbox')],
  }
}

describe('servers of the operator that need no key, when the caller sends one', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ operatorFile })
  })
  afterAll(() => app.stop())
  beforeEach(() => app.alpha.reset())

  const chat = (model: string, more: object = {}) => app.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hi' }], ...more })

  for (const [model, provider] of [
    ['box-model', 'ownbox'],
    ['opt-model', 'optbox'],
  ] as const) {
    test(`EDGE-14 an upstream_key does not make a call of ${provider} free: the call is refused before any provider is called`, async () => {
      const paid = await chat(model)
      expect([paid.status, paid.headers.get('x-br-provider')]).toEqual([200, provider])
      const [row] = await usageRows(app)
      expect([row?.byok, row?.costUinr === row?.valueUinr, (row?.costUinr ?? 0n) > 0n]).toEqual([false, true, true])
      app.alpha.reset()
      for (const more of [{}, { provider }]) {
        const refused = await chat(model, { upstream_key: 'anything', ...more })
        expect([refused.status, refused.json.error.code]).toEqual([400, 'no_route'])
        expect(refused.json.error.message).toContain(`"upstream_key" is of no use for ${provider}. Leave it out`)
      }
      const unlisted = await chat(`${provider}/whatever`, { upstream_key: 'anything' })
      expect([unlisted.status, unlisted.json.error.code]).toEqual([404, 'model_not_found'])
      expect(app.alpha.requests).toEqual([])
    })
  }

  test('BYOK-01 the public lists say that such a server accepts no keys of callers', async () => {
    const providers: { id: string; byok: boolean }[] = (await app.call('GET', '/v1/providers')).json.data
    const byok = Object.fromEntries(providers.map(provider => [provider.id, provider.byok]))
    expect([byok['ownbox'], byok['optbox'], byok['alpha']]).toEqual([false, false, true])
  })
})
