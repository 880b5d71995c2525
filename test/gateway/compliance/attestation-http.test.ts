import { createPublicKey, verify as verifySignature } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkArgsOf } from '../../../src/cli/reports/attestation-args.ts'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'
import { type OwnServer, startOwnServer } from '../byok/own-server.ts'
import { chat, dayMs, home } from './calls.ts'

const path = '/v1/org/residency/attestation'
const keysPath = '/.well-known/attestation-keys.json'
const clock = movableClock()

/** Adds the sums of a day for which the rows of single calls no longer exist. */
const addOldSums = statement<[orgId: number, day: string]>(
  'test.add_old_usage_sums',
  `insert into usage_days values ($1::int, $2::date, 'test-model', 'indus', 'india', false, 3, 0, 1, 1, 0, 0, 1, 1)`,
)
const keepFrom = statement<[day: string]>(
  'test.keep_usage_from',
  `insert into usage_retention (kept_from) values ($1::date) on conflict (single) do update set kept_from = excluded.kept_from`,
)
/** Changes the rows to what versions before this one wrote for a call to a server that its organisation declares to be in India. */
const makeOld = statement<[orgId: number]>(
  'test.make_declared_usage_old',
  `with days as (update usage_days set residency = 'india' where org_id = $1::int and provider like 'byoe:%')
   update usage_events set residency = 'india' where org_id = $1::int and provider like 'byoe:%'`,
)
const forgetSums = statement<[]>('test.forget_usage_sums', 'delete from usage_days')
const sealUnderAnother = statement<[]>(
  'test.seal_attestation_key_elsewhere',
  `update attestation_keys set sealed_private_key = 'v1.00000000.' || split_part(sealed_private_key, '.', 3) where retired_at is null`,
)

/** Writes a value in the canonical form of RFC 8785, for strings and numbers that JSON.stringify writes in that form. It shares no code with the product. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`)}}`
}

describe('attestations', () => {
  let app: TestApp
  let server: OwnServer
  beforeAll(async () => {
    server = await startOwnServer()
    app = await startApp({ clock, env: { ATTESTATION_EVIDENCE_MAX: '4', ANON_RPM: '1000', OUTBOUND_ALLOW: server.hostPort } })
  })
  afterAll(async () => {
    await app.stop()
    await server.close()
  })
  const attest = (query = '', key = app.key): Promise<TestReply> => app.call('GET', path + query, undefined, { token: key })
  const published = async (): Promise<{ keys: { kid: string; x: string }[] }> => (await app.call('GET', keysPath, undefined, { token: null })).json

  test('ATT-01 ATT-06 RCPT-01 ATT-02 an attestation without calls is a signed payload with zero figures; it names keys by id and contains no secret', async () => {
    const reply = await attest('?window=30d')
    expect(reply.status).toBe(200)
    const { payload, alg, key_id, signature, ed25519 } = reply.json
    expect(payload).toMatchObject({
      schema: 'brigade.residency-attestation.v1',
      issuer: app.baseUrl,
      org_id: app.orgId,
      window: '30d',
      summary: { total: 0, india_requests: 0, india_pct: 0, global_requests: 0, global_pct: 0, declared_requests: 0, unknown_requests: 0 },
      evidence: { count: 0, capped: false, capped_by: null, items: [] },
    })
    const { period, generated_at: generatedAt } = payload
    expect(new Date(period.from_at).getTime()).toBe(new Date(`${period.from}T00:00:00+05:30`).getTime())
    expect(new Date(`${period.to}T00:00:00Z`).getTime() - new Date(`${period.from}T00:00:00Z`).getTime()).toBe(29 * dayMs)
    expect(period.until_at).toBe(generatedAt)
    expect(alg).toBe('HMAC-SHA256')
    expect(signature).toMatch(/^[0-9a-f]{64}$/)
    expect(key_id).toMatch(/^[0-9a-f]{32}$/)
    expect(ed25519).toEqual({
      alg: 'EdDSA',
      key_id: expect.stringMatching(/^[\w-]{43}$/),
      signature: expect.stringMatching(/^[\w-]{86}$/),
      jwks_url: app.baseUrl + keysPath,
    })
    const { keys } = await published()
    expect(keys).toEqual([{ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: ed25519.key_id, alg: 'EdDSA', use: 'sig' }])
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: keys[0]?.x ?? '' }, format: 'jwk' })
    expect(verifySignature(null, Buffer.from(canonical(payload)), key, Buffer.from(ed25519.signature, 'base64url'))).toBe(true)
  })

  test('ATT-02 ATT-03 ATT-11 a call counts as India only if its place is known and no attempt of it went abroad', async () => {
    await chat(app, home(app), 'alpha')
    await chat(app, home(app), 'indus')
    await chat(app, home(app), 'indus')
    expect((await attest()).json.payload.summary).toMatchObject({ total: 3, india_requests: 2, india_pct: 66.67, global_requests: 1, global_pct: 33.33 })
    await chat(app, home(app), 'murky', 'global-only')
    const { payload } = (await attest()).json
    expect(payload.summary).toEqual({
      total: 4,
      india_requests: 2,
      india_pct: 50,
      global_requests: 2,
      global_pct: 50,
      declared_requests: 0,
      unknown_requests: 1,
    })
    expect(payload.evidence).toMatchObject({ count: 4, capped: false, capped_by: null })
    expect(payload.evidence.items.map((item: object) => Object.keys(item))).toEqual(
      Array(4).fill(['model', 'provider', 'residency', 'timestamp', 'correlation_id']),
    )
    expect(payload.evidence.items.map((item: { provider: string; residency: string }) => [item.provider, item.residency])).toEqual([
      ['murky', 'unknown'],
      ['indus', 'india'],
      ['indus', 'india'],
      ['alpha', 'global'],
    ])
    // alpha received the prompt before indus answered.
    for (const upstream of [app.alpha, app.beta]) upstream.script({ status: 500, body: { error: { message: 'no' } } })
    const failedOver = await app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'secret words' }] })
    expect([failedOver.status, failedOver.headers.get('x-br-provider')]).toEqual([200, 'indus'])
    const after = await attest()
    expect(after.json.payload.summary).toMatchObject({ total: 5, india_requests: 2, india_pct: 40, global_requests: 3, global_pct: 60 })
    expect(after.json.payload.evidence.items[0]).toMatchObject({
      provider: 'indus',
      residency: 'global',
      correlation_id: failedOver.headers.get('x-request-id'),
    })
    expect(after.text).not.toContain('secret words')
  })

  test('ATT-04 evidence lists the newest calls up to the limit, and the summary counts all calls; the attestation says when rows were deleted', async () => {
    const { payload } = (await attest()).json
    expect(payload.summary.total).toBe(5)
    expect(payload.evidence).toMatchObject({ count: 4, capped: true, capped_by: 'limit' })
    const times = payload.evidence.items.map((item: { timestamp: string }) => item.timestamp)
    expect(times).toEqual([...times].sort().reverse())
    const org = await app.otherOrg('Keeps Little')
    await chat(app, org, 'indus')
    await chat(app, org, 'alpha')
    await app.db.exec(addOldSums, org.orgId, new Date(clock.nowMs() - 20 * dayMs).toISOString().slice(0, 10))
    // Rows are missing although they were not deleted by age.
    expect([(await attest('', org.key)).json.error.message]).toEqual([expect.stringContaining('disagree')])
    await app.db.exec(keepFrom, new Date(clock.nowMs() - 10 * dayMs).toISOString().slice(0, 10))
    const old = (await attest('', org.key)).json.payload
    expect(old.summary).toMatchObject({ total: 5, india_requests: 4 })
    expect(old.evidence).toMatchObject({ count: 2, capped: true, capped_by: 'retention' })
    expect((await attest('?window=2d', org.key)).json.payload).toMatchObject({ summary: { total: 2 }, evidence: { count: 2, capped: false } })
  })

  test('ATT-03 a server that only the organisation declares to be in India never counts as India in a signed payload', async () => {
    const cookie = await app.signIn()
    const before = (await attest()).json.payload.summary
    const made = await app.call(
      'POST',
      '/me/endpoints',
      { name: 'Says So', model: 'test-model', base_url: server.url, upstream_model: 'm', residency: 'india' },
      { cookie },
    )
    expect(made.status, made.text).toBe(201)
    const more = { total: before.total + 2, india_requests: before.india_requests, declared_requests: 1, unknown_requests: before.unknown_requests }
    await chat(app, home(app), 'byoe:says-so')
    // A call that was tried at such a server first does not count as India either.
    server.misbehave(() => ({ status: 500 }))
    const steps = ['byoe:says-so', 'indus'].map(provider => ({ model: 'test-model', provider }))
    const served = await app.call('POST', '/v1/chat/completions', { model: 'test-model', fallbacks: steps, messages: [{ role: 'user', content: 'x' }] })
    expect(served.headers.get('x-br-provider')).toBe('indus')
    const { summary, evidence } = (await attest()).json.payload
    expect(summary).toMatchObject({ ...more, declared_requests: 2, global_requests: more.total - more.india_requests })
    expect(evidence.items.slice(0, 2).map(({ residency }: { residency: string }) => residency)).toEqual(['declared', 'declared'])
    const dpia = async () => (await app.call('GET', '/v1/org/dpia')).json
    expect((await dpia()).residency).toMatchObject({ declared: { requests: 2 }, india: { requests: more.india_requests } })
    await app.db.exec(makeOld, app.orgId)
    expect((await attest()).json.payload.evidence.items[1]).toMatchObject({ provider: 'byoe:says-so', residency: 'declared' })
    expect((await dpia()).audit_log).toContainEqual(expect.objectContaining({ provider: 'byoe:says-so', residency: 'declared' }))
  })

  test('ATT-08 ATT-09 the window is 1d to 365d, 30d by default, and counts IST days', async () => {
    for (const window of ['0d', '366d', '9999d', '30', '1m', '-1d', '01d', '1.5d', '', 'd', '30D', '30d ', '٣d']) {
      const reply = await attest(`?window=${encodeURIComponent(window)}`)
      expect([reply.status, reply.json.error.code], window).toEqual([400, 'bad_request'])
    }
    expect((await attest('?window=1d&window=2d')).status).toBe(400)
    expect((await attest('?format=pdf')).status).toBe(400)
    expect((await attest()).json.payload.window).toBe('30d')
    for (const window of ['1d', '365d']) {
      const { period } = (await attest(`?window=${window}`)).json.payload
      expect((Date.parse(period.to) - Date.parse(period.from)) / dayMs + 1).toBe(Number.parseInt(window, 10))
    }
    const org = await app.otherOrg('Late Callers')
    const midnightMs = Math.ceil((clock.nowMs() + 5.5 * 3600_000) / dayMs) * dayMs - 5.5 * 3600_000
    clock.moveTo(midnightMs - 60_000)
    await chat(app, org, 'alpha')
    clock.moveTo(midnightMs + 60_000)
    await chat(app, org, 'indus')
    expect((await attest('?window=1d', org.key)).json.payload.summary).toMatchObject({ total: 1, india_requests: 1, india_pct: 100, global_pct: 0 })
    expect((await attest('?window=2d', org.key)).json.payload.summary).toMatchObject({ total: 2, india_requests: 1 })
  })

  test('ATT-05 the HMAC covers the payload in the canonical form of RFC 8785: only the gateway can check it, and any change makes it invalid', async () => {
    const { text, json } = await attest()
    const admin = adminHandler(app.gateway.app)
    const check = (changed: string) => admin({ name: 'check-attestation', args: checkArgsOf(changed) })
    expect(await check(text)).toMatchObject({ valid: true, key_id: json.key_id })
    expect(await check(JSON.stringify(json, null, 2))).toMatchObject({ valid: true })
    await expect(check(text.replace(/"total":\d+/, '"total":77'))).rejects.toThrow('does not belong to this payload')
    await expect(check(text.replace(json.key_id, '0'.repeat(32)))).rejects.toThrow('never had an HMAC secret')
    await expect(check(text.replace(json.signature, `${json.signature.slice(0, 63)}${json.signature.endsWith('0') ? '1' : '0'}`))).rejects.toThrow('not valid')
    await expect(admin({ name: 'check-attestation', args: { ...checkArgsOf(text), signature: '' } })).rejects.toThrow('not valid')
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.integer({ min: 1, max: 127 }), async (at, flip) => {
        const { payload, ...rest } = checkArgsOf(text)
        const bytes = Buffer.from(payload)
        const place = at % bytes.length
        bytes[place] = (bytes[place] ?? 0) ^ flip
        await expect(admin({ name: 'check-attestation', args: { ...rest, payload: bytes.toString() } })).rejects.toThrow('does not belong')
      }),
      { numRuns: propertyRuns(60) },
    )
  })

  test('ATT-07 the report in Markdown has the same facts as the JSON', async () => {
    await chat(app, home(app), 'indus')
    const report = await attest('?window=7d&format=report')
    expect([report.status, report.headers.get('content-type')]).toEqual([200, 'text/markdown; charset=utf-8'])
    const signed = JSON.parse(/```json\n(.*)\n```/.exec(report.text)?.[1] ?? '')
    expect(signed.payload.window).toBe('7d')
    expect(await adminHandler(app.gateway.app)({ name: 'check-attestation', args: checkArgsOf(report.text) })).toMatchObject({ valid: true })
    const { summary, evidence } = signed.payload
    expect(report.text).toContain(`| in India | ${summary.india_requests} | ${summary.india_pct.toFixed(2)} % |`)
    expect(report.text).toContain(`| not proven to be in India | ${summary.global_requests} | ${summary.global_pct.toFixed(2)} % |`)
    for (const { correlation_id: id } of evidence.items) expect(report.text).toContain(`req&#95;${id.slice(4)}`)
    expect(report.text).toContain(signed.ed25519.key_id.replaceAll('_', '&#95;'))
  })

  test('after rotations, also concurrent ones, signatures of the old key stay valid, both keys are published, and one key is current', async () => {
    const before = (await attest()).json
    const made = await Promise.all([1, 2, 3].map(() => adminHandler(app.gateway.app)({ name: 'rotate-attestation-key', args: {} })))
    const after = (await attest()).json
    expect(made).toContainEqual(expect.objectContaining({ ed25519_key_id: after.ed25519.key_id, hmac_key_id: after.key_id }))
    expect([after.key_id === before.key_id, after.ed25519.key_id === before.ed25519.key_id]).toEqual([false, false])
    const ids = (await published()).keys.map(({ kid }) => kid)
    expect(ids).toEqual(expect.arrayContaining([before.ed25519.key_id, after.ed25519.key_id]))
    expect(ids[0]).toBe(after.ed25519.key_id)
    expect(await adminHandler(app.gateway.app)({ name: 'check-attestation', args: checkArgsOf(JSON.stringify(before)) })).toMatchObject({ valid: true })
    expect((await app.gateway.app.audit.list(null, { before: null }, 10)).entries.some(({ act }: { act: string }) => act === 'rotateAttestationKey')).toBe(true)
  })

  test('no attestation is signed with a key that cannot be opened, or over incomplete sums', async () => {
    const intact = (await published()).keys
    await app.db.exec(sealUnderAnother)
    const reply = await attest()
    expect([reply.status, reply.json.error.code]).toEqual([500, 'internal_error'])
    expect(reply.json.error.message).toContain('brigade admin rotate-attestation-key')
    expect((await published()).keys).toEqual(intact)
    expect(await app.gateway.app.doctor()).toContainEqual(expect.objectContaining({ what: 'key of attestations', state: 'wrong' }))
    await adminHandler(app.gateway.app)({ name: 'rotate-attestation-key', args: {} })
    expect((await attest()).status).toBe(200)
    expect((await app.gateway.app.doctor()).some(({ what }) => what === 'key of attestations')).toBe(false)
    await app.db.exec(forgetSums)
    const partial = await attest()
    expect([partial.status, partial.json.error.message]).toEqual([500, expect.stringContaining('brigade admin usage rebuild')])
  })
})
