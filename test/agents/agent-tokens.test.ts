import { createHmac } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, importJWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { testDatabase } from '../harness/database.ts'
import { newCaller, type Process, startProcess, testBaseUrl, thrownBy, until } from './setup.ts'

const database = await testDatabase()
let process: Process

beforeEach(async () => {
  process = await startProcess(database.db)
})
afterEach(() => process.stop())
afterAll(() => database.dispose())

async function newToken(name = 'worker') {
  const caller = await newCaller(process)
  const { agent } = await process.agents.createOrReuse(caller.principal, name)
  const minted = await process.agents.tokens.mint(caller.principal, agent.id)
  return { ...caller, agentId: agent.id, minted, token: minted.token }
}

const refusal = (reason: string) => ({
  errorName: 'invalid_api_key',
  status: 401,
  options: { extra: { reason }, headers: { 'www-authenticate': `Bearer realm="brigade", error="invalid_token", error_description="${reason}"` } },
})

test('the reply to a mint contains the agent and the life of the token', async () => {
  const { minted, agentId } = await newToken()
  expect(minted).toEqual({
    access_token: minted.token,
    token: expect.any(String),
    token_type: 'Bearer',
    expires_in: 900,
    expires_at: expect.stringMatching(/Z$/),
    agent_id: agentId,
    scope: 'inference memory:read memory:write usage:read tools:call',
  })
  expect(Math.abs(Date.parse(minted.expires_at) - process.clock.nowMs() - 900_000)).toBeLessThan(60_000)
})

test('a token verifies offline with the published keys and has the RFC 9068 claims', async () => {
  const { token, agentId, orgId, userId, keyId } = await newToken('triage')
  const jwks = { keys: [...(await process.agents.signingKeys.published())] }
  const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(jwks), {
    issuer: testBaseUrl,
    audience: `${testBaseUrl}/mcp`,
    algorithms: ['ES256'],
    typ: 'at+jwt',
  })
  expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: jwks.keys[0]?.kid })
  expect(payload).toEqual({
    iss: testBaseUrl,
    aud: [testBaseUrl, `${testBaseUrl}/mcp`],
    sub: `agent:${agentId}`,
    client_id: `agent:${agentId}`,
    org: orgId,
    uid: userId,
    key_id: keyId,
    ver: 2,
    scope: 'inference memory:read memory:write usage:read tools:call',
    agent: { id: agentId, name: 'triage', epoch: 1 },
    iat: expect.any(Number),
    nbf: payload.iat,
    exp: (payload.iat ?? 0) + 900,
    jti: expect.any(String),
  })
})

test('a token acts as its agent, under the limits of the key that minted it', async () => {
  const { token, agentId, orgId, userId, keyId } = await newToken('triage')
  await process.keys.setLimits(orgId, keyId, { rpmLimit: 7, dailyLimit: 70 })
  expect(await process.agents.tokens.principalOf(token)).toEqual({
    kind: 'agent',
    orgId,
    userId,
    role: 'owner',
    agentId,
    agentName: 'triage',
    ancestorIds: [],
    epoch: 1,
    tokenIds: [decodeJwt(token).jti],
    keyId,
    keyName: 'main',
    scopes: ['inference', 'memory:read', 'memory:write', 'usage:read', 'tools:call'],
    workspaceId: null,
    limits: { rpmLimit: 7, dailyLimit: 70 },
    isTrial: false,
    capabilities: [],
    policies: [],
    expiresAtMs: (decodeJwt(token).exp ?? 0) * 1000,
    lifeSeconds: 900,
  })
})

test('a token that was verified before is admitted synchronously and without a query', async () => {
  const { token } = await newToken()
  const first = await process.agents.tokens.principalOf(token)
  const before = process.db.roundTrips
  expect(process.agents.tokens.principalOf(token)).toEqual(first)
  expect(process.db.roundTrips).toBe(before)
})

test('the token of a child is admitted without a query too. It uses the cached rules of its parents until they change', async () => {
  const { principal, orgId } = await newCaller(process)
  const { agent: top } = await process.agents.createOrReuse(principal, 'top', { mayDelegate: true, maxOutputTokens: 500 })
  const parent = await process.agents.tokens.principalOf((await process.agents.tokens.mint(principal, top.id)).token)
  const params = { name: 'below', rules: { maxConcurrency: 3 }, capUinr: undefined, token: {} }
  const { agent, token } = await process.agents.children.create(parent, top.id, params)
  const first = await process.agents.tokens.principalOf(token.token)
  expect(first).toMatchObject({
    agentId: agent.id,
    ancestorIds: [top.id],
    policies: [
      { ownerId: agent.id, maxConcurrency: 3 },
      { ownerId: top.id, maxOutputTokens: 500 },
    ],
  })
  const before = process.db.roundTrips
  expect(process.agents.tokens.principalOf(token.token)).toEqual(first)
  expect(process.db.roundTrips).toBe(before)
  await process.agents.update(orgId, top.id, { maxOutputTokens: 5 }, 'operator')
  expect((await process.agents.tokens.principalOf(token.token)).policies).toMatchObject([{ maxConcurrency: 3 }, { maxOutputTokens: 5 }])
})

test('a token is refused after its expiry, even if it was verified before', async () => {
  const { token } = await newToken()
  process.clock.advance(890_000)
  await until(() => !process.agents.killSwitch.isStale(), 'fresh news after the jump in time')
  await process.agents.tokens.principalOf(token)
  process.clock.advance(10_000)
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(refusal('token_expired'))
})

test.each([1_000, 31_000, 3_600_000])('a token is refused as expired %i ms after its expiry, even if it was never verified before', async lateMs => {
  const { token } = await newToken()
  process.clock.advance(900_000 + lateMs)
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(refusal('token_expired'))
})

test('only a full API key mints tokens', async () => {
  const { principal, agentId, token } = await newToken()
  const asAgent = await process.agents.tokens.principalOf(token)
  await expect(process.agents.tokens.mint(asAgent, agentId)).rejects.toMatchObject({ errorName: 'forbidden' })
  await expect(process.agents.tokens.mint({ ...principal, scope: 'inference' }, agentId)).rejects.toMatchObject({ errorName: 'forbidden' })
})

test('a revoked agent gets no token', async () => {
  const { principal, orgId, agentId } = await newToken()
  await process.agents.revoke(orgId, agentId, 'operator')
  await expect(process.agents.tokens.mint(principal, agentId)).rejects.toMatchObject({ errorName: 'agent_revoked', status: 409 })
})

test.each([
  ['switched off', (p: Process, orgId: number, keyId: number) => p.keys.setEnabled(orgId, keyId, false)],
  ['revoked', (p: Process, orgId: number, keyId: number) => p.keys.revoke(orgId, keyId)],
])('tokens end when their key is %s', async (_how, end) => {
  const { token, orgId, keyId } = await newToken()
  const principal = await process.agents.tokens.principalOf(token)
  await end(process, orgId, keyId)
  expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(refusal('key_revoked'))
  expect(await thrownBy(() => process.agents.tokens.recheck(principal))).toMatchObject(refusal('key_revoked'))
})

/** Returns a token with the claims of a valid token, changed and signed again by an attacker. */
async function forge(token: string, change: { claims?: JWTPayload; header?: { alg: string; typ?: string; kid?: string } }): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256')
  const { kid } = decodeProtectedHeader(token)
  return new SignJWT({ ...decodeJwt(token), ...change.claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', ...(kid === undefined ? {} : { kid }), ...change.header })
    .sign(privateKey)
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a signature by another key is refused', async () => {
  const { token } = await newToken()
  expect(await thrownBy(async () => process.agents.tokens.principalOf(await forge(token, {})))).toMatchObject(refusal('token_invalid'))
})

test('a token with an unknown, missing or foreign key id is refused', async () => {
  const { token } = await newToken()
  for (const kid of ['nobody', '../../etc/passwd', ''])
    expect(await thrownBy(async () => process.agents.tokens.principalOf(await forge(token, { header: { alg: 'ES256', typ: 'at+jwt', kid } })))).toMatchObject(
      refusal('token_invalid'),
    )
  const [, payload, signature] = token.split('.')
  const withoutKid = `${encode({ alg: 'ES256', typ: 'at+jwt' })}.${payload}.${signature}`
  expect(await thrownBy(() => process.agents.tokens.principalOf(withoutKid))).toMatchObject(refusal('token_invalid'))
})

test('the gateway does not trust a key in the header of the token', async () => {
  const { token } = await newToken()
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const forged = await new SignJWT(decodeJwt(token))
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', jwk: await exportJWK(publicKey), jku: 'https://attacker.example/jwks.json' })
    .sign(privateKey)
  expect(await thrownBy(() => process.agents.tokens.principalOf(forged))).toMatchObject(refusal('token_invalid'))
})

test('a token with alg none is refused, with and without a signature', async () => {
  const { token } = await newToken()
  const { kid } = decodeProtectedHeader(token)
  const [, payload, signature] = token.split('.')
  for (const alg of ['none', 'None', 'NONE', '']) {
    const header = encode({ alg, typ: 'at+jwt', kid })
    for (const tail of ['', signature])
      expect(await thrownBy(() => process.agents.tokens.principalOf(`${header}.${payload}.${tail}`))).toMatchObject(refusal('token_invalid'))
  }
})

test('an HMAC made with the public key as the secret is refused', async () => {
  const { token } = await newToken()
  const [jwk] = await process.agents.signingKeys.published()
  const [, payload] = token.split('.')
  const signed = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: jwk?.kid })}.${payload}`
  for (const secret of [JSON.stringify(jwk), jwk?.x ?? '', Buffer.from(jwk?.x ?? '', 'base64url')]) {
    const mac = createHmac('sha256', secret).update(signed).digest('base64url')
    expect(await thrownBy(() => process.agents.tokens.principalOf(`${signed}.${mac}`))).toMatchObject(refusal('token_invalid'))
  }
})

test('a token with changed claims is refused, because the signature does not match', async () => {
  const { token } = await newToken()
  const [header, , signature] = token.split('.')
  const tampered = `${header}.${encode({ ...decodeJwt(token), org: 1, agent: { id: 1, name: 'x', epoch: 99 } })}.${signature}`
  expect(await thrownBy(() => process.agents.tokens.principalOf(tampered))).toMatchObject(refusal('token_invalid'))
})

test.each(['..', 'a.b.c', 'e30.e30.', `${'x'.repeat(5000)}.${'y'.repeat(5000)}.z`, 'é.ü.ß'])('the text %j is refused as a token', async text => {
  expect(await thrownBy(() => process.agents.tokens.principalOf(text))).toMatchObject(refusal('token_invalid'))
})

test('a token of a gateway with another address is refused, although the same keys signed it', async () => {
  const { principal, agentId } = await newToken()
  const elsewhere = await startProcess(database.db, { baseUrl: 'https://other.example' })
  try {
    const { token } = await elsewhere.agents.tokens.mint(principal, agentId)
    await elsewhere.agents.tokens.principalOf(token)
    expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(refusal('token_invalid'))
  } finally {
    await elsewhere.stop()
  }
})

test('a genuine signature does not help when audience, type, issuer or subject are wrong, or times are missing', async () => {
  const { token } = await newToken()
  const { kid, key } = await process.agents.signingKeys.current()
  const good = decodeJwt(token)
  const sign = (claims: JWTPayload, typ = 'at+jwt') => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', typ, kid }).sign(key)
  const { exp: _exp, ...withoutExpiry } = good
  const { agent: _agent, ...withoutAgent } = good
  const wrong = [
    await sign({ ...good, aud: 'https://other.example' }),
    await sign({ ...good, aud: `${testBaseUrl}/mcp` }),
    await sign({ ...good, iss: 'https://other.example' }),
    await sign(good, 'JWT'),
    await sign({ ...good, sub: 'agent:1' }),
    await sign({ ...good, nbf: (good.iat ?? 0) + 300 }),
    await sign(withoutExpiry),
    await sign(withoutAgent),
    await sign({ ...good, agent: { id: 'x' } }),
  ]
  for (const bad of wrong) expect(await thrownBy(() => process.agents.tokens.principalOf(bad))).toMatchObject(refusal('token_invalid'))
  const control = await sign(good)
  expect(await process.agents.tokens.principalOf(control)).toMatchObject({ kind: 'agent' })
})

test('a token whose key belongs to another organisation is refused', async () => {
  const [mine, theirs] = [await newToken(), await newToken()]
  const { kid, key } = await process.agents.signingKeys.current()
  const crossed = await new SignJWT({ ...decodeJwt(mine.token), key_id: theirs.keyId }).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid }).sign(key)
  expect(await thrownBy(() => process.agents.tokens.principalOf(crossed))).toMatchObject(refusal('key_revoked'))
})

test('a published key is a complete public key without private parts', async () => {
  await newToken()
  for (const jwk of await process.agents.signingKeys.published()) {
    expect(Object.keys(jwk).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    await importJWK(jwk, 'ES256')
  }
})

test('a token never lives longer than the present setting, because revocations and old signing keys are remembered only for that time', async () => {
  const { principal, agentId } = await newToken('long lived')
  const before = await startProcess(database.db, { tokenTtlSeconds: 86_400 })
  try {
    const { token } = await before.agents.tokens.mint(principal, agentId)
    const { iat = 0, exp = 0 } = decodeJwt(token)
    expect(exp - iat).toBe(86_400)
    expect(await process.agents.tokens.principalOf(token)).toMatchObject({ lifeSeconds: 900, expiresAtMs: (iat + 900) * 1000 })
    process.clock.advance(901_000)
    expect(await thrownBy(() => process.agents.tokens.principalOf(token))).toMatchObject(refusal('token_expired'))
    expect(await before.agents.tokens.principalOf(token)).toMatchObject({ lifeSeconds: 86_400 })
  } finally {
    await before.stop()
  }
})
