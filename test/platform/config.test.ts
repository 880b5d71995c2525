import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig, settings } from '../../src/platform/config.ts'

describe('the configuration', () => {
  test('without any environment variable, every setting has its default', () => {
    const config = loadConfig({})
    expect(config.PORT).toBe(8787)
    expect(config.HOST).toBe('127.0.0.1')
    expect(config.DATABASE_URL).toBeNull()
  })

  test('TEST-04 every number can be set in the environment, and an invalid one is refused with its name', () => {
    for (const [name, setting] of Object.entries(settings)) {
      if (setting.kind !== 'int') continue
      expect((loadConfig({ [name]: '7777' }) as unknown as Record<string, unknown>)[name]).toBe(7777)
      expect(() => loadConfig({ [name]: 'many' }), name).toThrow(name)
    }
  })

  test('an invalid switch or URL is refused with the accepted values', () => {
    expect(() => loadConfig({ SANDBOX: 'maybe' })).toThrow(ConfigError)
    expect(() => loadConfig({ BASE_URL: 'ftp://x' })).toThrow('BASE_URL')
    expect(() => loadConfig({ SETTLE: 'never' })).toThrow('SETTLE')
    expect(() => loadConfig({ PLAYGROUND_BUDGET_INR: '1000000001' })).toThrow('PLAYGROUND_BUDGET_INR')
  })

  test('the addresses of operators are compared in one form, and an invalid one is refused with its text', () => {
    expect(loadConfig({}).OPERATOR_EMAILS).toEqual([])
    expect(loadConfig({ OPERATOR_EMAILS: ' Asha@Example.com, ravi@localhost ,asha@example.COM,' }).OPERATOR_EMAILS).toEqual([
      'asha@example.com',
      'ravi@localhost',
    ])
    for (const wrong of ['asha', 'a@b@c', 'Asha <asha@example.com>', '*@example.com; b@c.de', '@example.com', 'a@\u212Aelvin.test'])
      expect(() => loadConfig({ OPERATOR_EMAILS: `ravi@example.com,${wrong}` }), wrong).toThrow(`not "${wrong}"`)
    const many = Array.from({ length: 101 }, (_, n) => `person-${n}@example.com`).join(',')
    expect(() => loadConfig({ OPERATOR_EMAILS: many })).toThrow('OPERATOR_EMAILS must list at most 100 addresses, not 101.')
  })

  test("a provider's key and base URL come from variables with its id", () => {
    const { apiKey, baseUrl } = loadConfig({ MY_LLM_API_KEY: 'k', MY_LLM_BASE_URL: 'http://127.0.0.1:1/v1/' }).providerEnv('my-llm')
    expect(apiKey?.reveal()).toBe('k')
    expect(baseUrl).toBe('http://127.0.0.1:1/v1')
  })

  test('a printed database URL is hidden', () => {
    expect(JSON.stringify(loadConfig({ DATABASE_URL: 'postgres://u:hunter2@h/db' }))).not.toContain('hunter2')
  })
})
