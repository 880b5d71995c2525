import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { CatalogPart } from '../src/gateway/catalog/loading/build-snapshot.ts'
import { loadCatalog } from '../src/gateway/catalog/loading/load.ts'
import { sandboxProvider } from '../src/gateway/catalog/loading/sandbox.ts'
import { checkProviders } from '../src/operations/doctor/providers.ts'
import { loadConfig } from '../src/platform/config.ts'

describe("the doctor's checks of providers", () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-doctor-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const warnings = (env: Record<string, string>, file: object = {}, extraProviders: readonly CatalogPart[] = []): string[] => {
    const operatorFile = join(folder, 'brigade.config.json')
    writeFileSync(operatorFile, JSON.stringify(file))
    const config = loadConfig(env)
    return checkProviders(loadCatalog({ config, operatorFile, extraProviders }), config)
      .filter(({ state }) => state !== 'ok')
      .map(({ what, detail }) => `${what}: ${detail}`)
  }
  const route = { provider: 'yamuna', input_inr_per_mtok: 1, output_inr_per_mtok: 1 }
  const models = [{ id: 'own-chat', routes: [route] }]
  const yamuna = { id: 'yamuna', base_url: 'https://yamuna.example/v1', dialect: 'anthropic' }

  test('a gateway that serves on its own key has no finding', () => {
    expect(warnings({ GROQ_API_KEY: 'gsk_abc' })).toEqual([])
    expect(warnings({ YAMUNA_API_KEY: 'k' }, { providers: [yamuna], models })).toEqual([])
  })

  test('a sandbox that is paid for with real money is reported', () => {
    const sandbox = [sandboxProvider('http://127.0.0.1:1')]
    const payments = { RAZORPAY_KEY_ID: 'rzp_live_key', RAZORPAY_KEY_SECRET: 's' }
    expect(warnings(payments, {}, sandbox)).toEqual([expect.stringMatching(/^provider sandbox: .*set SANDBOX=off$/)])
    expect(warnings({ ...payments, RAZORPAY_KEY_ID: 'rzp_test_key' }, {}, sandbox)).toEqual([])
    expect(warnings({}, {}, sandbox)).toEqual([])
  })

  test('the state of the sandbox is explained by the setting that decides it', () => {
    const emptyFile = (): string => {
      const file = join(folder, 'empty.json')
      writeFileSync(file, '{}')
      return file
    }
    const said = (env: Record<string, string>, extra: readonly CatalogPart[] = []): string | undefined => {
      const config = loadConfig(env)
      const found = checkProviders(loadCatalog({ config, operatorFile: emptyFile(), extraProviders: extra }), config)
      return found.find(({ what }) => what === 'sandbox')?.detail
    }
    const sandbox = [sandboxProvider('http://127.0.0.1:1')]
    expect(said({}, sandbox)).toBe('is on, because no provider key that is set serves a model')
    expect(said({ SANDBOX: 'on', GROQ_API_KEY: 'gsk_a' }, sandbox)).toBe('is on, because SANDBOX=on is set')
    expect(said({ SANDBOX: 'off' })).toBe('is off, because SANDBOX=off is set. SANDBOX=on turns it on')
    expect(said({ GROQ_API_KEY: 'gsk_a' })).toBe('is off, because GROQ_API_KEY is set. SANDBOX=on keeps it on')
  })

  test('a gateway without providers is reported', () => {
    expect(warnings({})).toEqual([expect.stringContaining('none is configured')])
  })

  test.each([
    ['a key without an address', { VLLM_API_KEY: 'k', GROQ_API_KEY: 'gsk_a' }, {}, /^provider vllm: .*set VLLM_BASE_URL/],
    ['an address without a key', { CEREBRAS_BASE_URL: 'https://models.example/v1', GROQ_API_KEY: 'gsk_a' }, {}, /^provider cerebras: .*set CEREBRAS_API_KEY/],
    ['a route of the operator file without a key', { GROQ_API_KEY: 'gsk_a' }, { providers: [yamuna], models }, /^provider yamuna: .*set YAMUNA_API_KEY/],
    ["a key in another provider's place", { GROQ_API_KEY: 'sk-proj-abc' }, {}, /^provider groq: has a key that does not look like one of Groq: check it$/],
    ['a key that serves nobody', { ANTHROPIC_API_KEY: 'sk-ant-abc', GROQ_API_KEY: 'gsk_a' }, {}, /^provider anthropic: .*PUT \/me\/byok\/anthropic/],
    ['a judge that is not there', { PANEL_JUDGE: 'nobody', GROQ_API_KEY: 'gsk_a' }, {}, /^PANEL_JUDGE: "nobody" is no model/],
    [
      'a judge that does not see',
      { PANEL_JUDGE: 'own-chat', GROQ_API_KEY: 'gsk_a', YAMUNA_API_KEY: 'k' },
      { providers: [yamuna], models },
      /^PANEL_JUDGE: .*sees/,
    ],
  ])('%s is told, once, without the key', (_, env, file, expected) => {
    const found = warnings(env, file)
    expect(found).toEqual([expect.stringMatching(expected)])
    for (const value of Object.values(env)) if (/^(gsk_|sk-)/.test(value)) expect(found.join()).not.toContain(value)
  })
})
