import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { type KeptToken, TokenCache, type TokenParams } from '../../src/cli/agent/token-cache.ts'
import { Secret } from '../../src/platform/security/secret.ts'
import { bootUuid } from '../../src/platform/values/ids.ts'

const key = 'br-the-key-that-mints-1'
const startMs = 1_800_000_000_000

describe('tokens that are stored between two runs', () => {
  let folder: string
  let nowMs: number
  let cache: TokenCache
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'brigade-tokens-'))
    nowMs = startMs
    cache = new TokenCache(folder, { nowMs: () => nowMs, randomName: bootUuid })
    return () => rmSync(folder, { recursive: true, force: true })
  })

  const paramsOf = (more: Partial<TokenParams> = {}): TokenParams => ({
    baseUrl: 'https://gw.example.com',
    credential: new Secret(key),
    agent: 'reviewer',
    scope: undefined,
    ttlS: undefined,
    ...more,
  })
  const tokenOf = (lifeS = 900, more: Partial<KeptToken> = {}): KeptToken => ({
    access_token: 'eyJ.one.sig',
    base_url: 'https://gw.example.com',
    agent_id: 7,
    scope: 'inference',
    minted_at_ms: startMs,
    expires_at_ms: startMs + lifeS * 1000,
    ...more,
  })
  const files = (): string[] => readdirSync(join(folder, 'tokens'))

  test('a token is returned until two minutes before its end, and a short-lived token for half of its life', () => {
    cache.keep(paramsOf(), tokenOf())
    nowMs = startMs + 779_000
    expect(cache.find(paramsOf())).toEqual(tokenOf())
    nowMs = startMs + 780_000
    expect(cache.find(paramsOf())).toBe(null)
    nowMs = startMs
    cache.keep(paramsOf({ ttlS: 60 }), tokenOf(60))
    nowMs = startMs + 29_000
    expect(cache.find(paramsOf({ ttlS: 60 }))).not.toBe(null)
    nowMs = startMs + 30_000
    expect(cache.find(paramsOf({ ttlS: 60 }))).toBe(null)
    // When the clock was set back, the age of a token is unknown.
    nowMs = startMs - 61_000
    expect(cache.find(paramsOf())).toBe(null)
  })

  test('a token is not returned for another gateway, key, agent, scope or life', () => {
    cache.keep(paramsOf(), tokenOf())
    for (const more of [
      { baseUrl: 'https://two.example.com' },
      { credential: new Secret('br-another-key-00001') },
      { agent: 'triage' },
      { scope: 'memory:read' },
      { ttlS: 900 },
    ])
      expect(cache.find(paramsOf(more)), JSON.stringify(more)).toBe(null)
    expect(cache.find(paramsOf())).not.toBe(null)
  })

  test('only this user can read the file, and the file does not contain the key that minted the token', () => {
    cache.keep(paramsOf(), tokenOf())
    const [name = ''] = files()
    const path = join(folder, 'tokens', name)
    expect([statSync(path).mode & 0o777, statSync(join(folder, 'tokens')).mode & 0o777]).toEqual([0o600, 0o700])
    expect(name + readFileSync(path, 'utf8')).not.toContain(key)
  })

  test('a file that contains no token counts as missing, and the next token replaces it', () => {
    cache.keep(paramsOf(), tokenOf())
    const [name = ''] = files()
    for (const text of [
      '',
      '{"access_token":"eyJ',
      'null',
      '[]',
      '{"access_token":"two\\nlines","base_url":"x","scope":"","minted_at_ms":0,"expires_at_ms":9e15}',
    ]) {
      writeFileSync(join(folder, 'tokens', name), text)
      expect(cache.find(paramsOf()), text).toBe(null)
    }
    cache.keep(paramsOf(), tokenOf())
    expect(cache.find(paramsOf())).toEqual(tokenOf())
    expect(files()).toEqual([name])
  })

  test('the next write deletes expired tokens; the tokens of a revoked agent are deleted immediately', () => {
    cache.keep(paramsOf({ agent: 'short' }), tokenOf(10))
    cache.keep(paramsOf({ agent: 'long' }), tokenOf(900, { agent_id: 8 }))
    nowMs = startMs + 11_000
    cache.keep(paramsOf(), tokenOf())
    expect(files()).toHaveLength(2)
    cache.forgetAgent('https://two.example.com', 8)
    expect(files()).toHaveLength(2)
    cache.forgetAgent('https://gw.example.com', 8)
    expect(cache.find(paramsOf({ agent: 'long' }))).toBe(null)
    expect(cache.find(paramsOf())).not.toBe(null)
  })

  test('without any stored token, nothing is found and there is nothing to delete', () => {
    expect(cache.find(paramsOf())).toBe(null)
    cache.forgetAgent('https://gw.example.com', 7)
  })
})
