/** The cost of one exchange is bounded, whatever keys the rules contain. */
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ExchangeDeps, TokenExchange } from '../../src/agents/federation/oauth-exchange.ts'
import { isCheapKey, pastedKeys } from '../../src/agents/federation/trust-checks.ts'
import { systemClock } from '../../src/platform/clock.ts'

const number = (bits: number): string => {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff)
  bytes[0] = 0xff >> (bytes.length * 8 - bits)
  return bytes.toString('base64url')
}

test('RSA keys may have at most 4096 bits, and their exponents at most 32, both for pasted and for fetched keys', () => {
  for (const [bits, exponent, isTaken] of [
    [2048, 'AQAB', true],
    [4096, 'AQAB', true],
    [4096, number(32), true],
    [4097, 'AQAB', false],
    [16_384, 'AQAB', false],
    [2048, number(33), false],
    [3072, number(3064), false],
  ] as const) {
    const key = { kty: 'RSA' as const, n: number(bits), e: exponent }
    expect(isCheapKey(key), `${bits} ${exponent.length}`).toBe(isTaken)
    expect(pastedKeys.safeParse({ keys: [key] }).success, `${bits} ${exponent.length}`).toBe(isTaken)
  }
})

test('one exchange tries at most four places of keys. Rules that fit the claims of the token come first', async () => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const nowS = Math.floor(systemClock.nowMs() / 1_000)
  const claims = { iss: 'https://issuer.example', aud: 'us', sub: 'job', iat: nowS, exp: nowS + 60 }
  const token = `${part({ alg: 'ES256', kid: 'k' })}.${part(claims)}.${Buffer.alloc(64, 1).toString('base64url')}`
  const rule = (subject: string) => {
    const jwk = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: 'k' }
    return { issuer: claims.iss, audience: 'us', subject, claims: {}, jwksUri: null, hasKeys: true, keysDigest: jwk.x, keys: { keys: [jwk] }, agentId: 1 }
  }
  const exchangeBy = (rules: readonly object[]) => {
    const trust = { matching: async () => rules, pastedKeysOf: async (asked: { keys: unknown }) => asked.keys }
    const deps = { clock: systemClock, baseUrl: () => 'https://us.example', trust } as unknown as ExchangeDeps
    const form = { subject_token: token } as Parameters<TokenExchange['exchange']>[0]
    return new TokenExchange(deps).exchange(form, { sourceIp: null, requestId: 'r' })
  }
  await expect(exchangeBy(Array.from({ length: 5 }, () => rule('job')))).rejects.toThrow('more than 4 places of keys')
  await expect(exchangeBy([...Array.from({ length: 5 }, () => rule('other')), rule('job')])).rejects.toThrow('signature')
})
