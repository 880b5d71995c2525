import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { runHere } from '../../cli/run-here.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'

vi.setConfig({ testTimeout: 120_000 })

const acts = statement<[], { act: string; orgId: number | null; target: string; outcome: string }>(
  'test.doubts_acts',
  `select act as "act", org_id as "orgId", target as "target", outcome as "outcome" from audit_log
   where actor_kind = 'operator' and (act like '%Parked%' or act like '%InDoubt') order by id`,
)
const sums = statement<[], { events: number; valueUinr: string }>(
  'test.doubts_sums',
  `select count(*)::int as "events", coalesce(sum(value_uinr), 0)::text as "valueUinr" from usage_events`,
)
const makeUnknown = statement<[]>('test.doubts_unknown', `update idempotency_keys set state = 'unknown'`)

// In tests, a gateway has an admin socket only on the embedded database. test/gateway/limits/doubts.multi.test.ts covers PostgreSQL.
describe.skipIf(onPostgres)('records and calls in doubt', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { JOURNAL_FLUSH_MS: '50' } })
    app.alpha.script(() => ({ usage: { prompt_tokens: 0, completion_tokens: 7, total_tokens: 7 } }))
  })
  afterAll(() => app?.stop())
  const admin = async (...words: string[]) => runHere(['admin', ...words], { DATA_DIR: app.dataDir, DATABASE_URL: undefined, BASE_URL: undefined })
  const records = async () => JSON.parse((await admin('parked', 'list', '--json')).out).records
  const chat = (headers: Record<string, string> = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello' }] }, { headers })
  const spent = async () => (await app.call('GET', '/v1/me/budgets')).json.budgets[0].spent_inr

  test('EDGE-23 the operator can list a parked record, apply it once after its cause is fixed, or discard it, each with an audit line', async () => {
    await app.setBudget('key', app.keyId, 100)
    // The database refuses a record that costs ₹0.00028, as it could after a wrong schema change.
    await app.db.script('alter table usage_events add constraint refusal check (value_uinr <> 280) not valid')
    for (let i = 0; i < 2; i++) expect((await chat()).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    const parked = await records()
    expect(parked).toEqual(Array(2).fill(expect.objectContaining({ org_id: app.orgId, kind: 'settle', value_inr: 0.00028 })))
    expect(parked[0].reason).toContain('refusal')
    expect((await admin('parked', 'list')).out).toContain('REASON')
    expect(await spent()).toBe(0)

    const [first, second] = parked.map((record: { id: number }) => String(record.id))
    const refused = await admin('parked', 'apply', first)
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('still refuses') })
    expect(await records()).toHaveLength(2)

    await app.db.script('alter table usage_events drop constraint refusal')
    const applied = await admin('parked', 'apply', first, '--json')
    expect([applied.code, JSON.parse(applied.out)]).toEqual([0, expect.objectContaining({ charged: true, value_inr: 0.00028 })])
    expect(await app.db.one(sums)).toEqual({ events: 1, valueUinr: '280' })
    expect(await spent()).toBe(0.00028)
    expect(await admin('parked', 'apply', first)).toMatchObject({ code: 1, err: expect.stringContaining('there is no parked record') })

    expect(JSON.parse((await admin('parked', 'discard', second, '--json')).out)).toMatchObject({ charged: false })
    expect(await records()).toEqual([])
    expect((await admin('parked', 'list')).out).toBe('no record is parked\n')
    expect(await app.db.one(sums)).toEqual({ events: 1, valueUinr: '280' })
    expect(await app.db.many(acts)).toEqual([
      { act: 'applyParkedRecord', orgId: null, target: `parked=${first}`, outcome: 'failed' },
      { act: 'applyParkedRecord', orgId: app.orgId, target: `parked=${first}`, outcome: 'ok' },
      { act: 'applyParkedRecord', orgId: null, target: `parked=${first}`, outcome: 'failed' },
      { act: 'discardParkedRecord', orgId: app.orgId, target: `parked=${second}`, outcome: 'ok' },
    ])
  })

  test('EDGE-23 the operator can list a call in doubt, free its idempotency key with discard, and keep the key taken with apply', async () => {
    for (const key of ['doubt-1', 'doubt-2']) expect((await chat({ 'idempotency-key': key })).status).toBe(200)
    await app.gateway.app.limits.flushNow()
    // Makes the state of a call that a provider was working on when its process died.
    await app.db.exec(makeUnknown)
    expect((await chat({ 'idempotency-key': 'doubt-1' })).status).toBe(409)
    const { processes, calls } = JSON.parse((await admin('in-doubt', 'list', '--json')).out)
    expect(processes).toEqual([])
    expect(calls).toEqual(
      Array(2).fill(expect.objectContaining({ org_id: app.orgId, caller: `key:${app.keyId}`, state: 'unknown', request_id: expect.any(String) })),
    )
    expect((await admin('in-doubt', 'list')).out).toContain(calls[0].call)

    const org = ['--org', String(app.orgId)]
    expect((await admin('in-doubt', 'discard', ...org, '--call', calls[0].call)).code).toBe(0)
    expect((await chat({ 'idempotency-key': 'doubt-1' })).status).toBe(200)
    expect((await admin('in-doubt', 'apply', ...org, '--call', calls[1].call)).code).toBe(0)
    const replayed = await chat({ 'idempotency-key': 'doubt-2' })
    expect([replayed.status, replayed.json.error.code]).toEqual([409, 'idempotency_replayed'])
    expect((await admin('in-doubt', 'list')).out).toBe('no process is in doubt\nno call is in doubt\n')

    expect(await admin('in-doubt', 'discard', ...org, '--call', calls[1].call)).toMatchObject({ code: 1, err: expect.stringContaining('in doubt') })
    expect(await admin('in-doubt', 'discard', ...org)).toMatchObject({ code: 1, err: expect.stringContaining('say either') })
    expect(await admin('in-doubt', 'discard', '--process', '999999')).toMatchObject({ code: 1, err: expect.stringContaining('there is no process') })
    expect((await app.db.many(acts)).filter(line => line.act.endsWith('InDoubt'))).toEqual([
      { act: 'discardCallInDoubt', orgId: app.orgId, target: `call=${calls[0].call}`, outcome: 'ok' },
      { act: 'applyCallInDoubt', orgId: app.orgId, target: `call=${calls[1].call}`, outcome: 'ok' },
      { act: 'discardCallInDoubt', orgId: app.orgId, target: `call=${calls[1].call}`, outcome: 'failed' },
    ])
  })
})
