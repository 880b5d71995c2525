import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MerkleRoot } from '../../../src/gateway/compliance/heads/merkle-root.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { istDay } from '../../../src/platform/values/ist-time.ts'
import { runHere } from '../../cli/run-here.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { type McpFixture, startMcpFixture } from '../tools/mcp-server.ts'
import { type Registered, register } from '../tools/registered.ts'

const dayMs = 24 * 3600_000
/** Moves everything of the last hour back by some days, as if it had been written then. */
const ageCalls = statement<[days: number]>(
  'test.age_tool_calls',
  `update usage_events set recorded_at = recorded_at - $1::int * interval '1 day' where kind = 'tool' and recorded_at > now() - interval '1 hour'`,
)
const ageActs = statement<[days: number]>(
  'test.age_tool_acts',
  `update audit_log set at = at - $1::int * interval '1 day'
   where act in ('approveTool', 'blockTool', 'noteToolChanges') and at > now() - interval '1 hour'`,
)
/** Gives rows to an organisation that does not exist, which deletes them for everybody, and gives them back. */
const flipCall = statement<[requestId: string]>('test.flip_tool_call', 'update usage_events set org_id = -org_id where request_id = $1::text')
const flipAct = statement<[hash: string]>(
  'test.flip_tool_act',
  `update audit_log set org_id = -org_id where act = 'approveTool' and target like '%' || $1::text`,
)
const flipHead = statement<[day: string]>('test.flip_tool_head', 'update tool_audit_heads set org_id = -org_id where day = $1::date')
const addValue = statement<[requestId: string, uinr: number]>(
  'test.add_tool_value',
  'update usage_events set value_uinr = value_uinr + $2::int where request_id = $1::text',
)
const changeHead = statement<[day: string, from: string, to: string]>(
  'test.change_tool_head',
  'update tool_audit_heads set payload = replace(payload, $2::text, $3::text) where day = $1::date',
)
const keepFrom = statement<[day: string]>(
  'test.keep_tool_calls_from',
  `insert into usage_retention (kept_from) values ($1::date) on conflict (single) do update set kept_from = excluded.kept_from`,
)
const toolRows = statement<[orgId: number], { outcome: string; requestId: string }>(
  'test.tool_audit_calls',
  `select outcome, request_id as "requestId" from usage_events where org_id = $1::int and kind = 'tool' order by id`,
)

let app: TestApp
let server: McpFixture
let registered: Registered
let caller: { id: number; token: string }
let env: Record<string, string>
let earlier: string
let later: string
const folder = mkdtempSync(join(tmpdir(), 'brigade-tool-audit-'))

beforeAll(async () => {
  server = await startMcpFixture('modern')
  app = await startApp({ env: { OUTBOUND_ALLOW: server.hostPort } })
  env = { BRIGADE: app.baseUrl, BRIGADE_KEY: app.key, HOME: folder, XDG_CONFIG_HOME: folder }
})
afterAll(async () => {
  await app.stop()
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const call = (name: string, args: object = {}, signal?: AbortSignal) =>
  app.call('POST', `/v1/tools/mod__${name}/call`, { arguments: args }, { token: caller.token, ...(signal === undefined ? {} : { signal }) })
const verify = (...words: string[]) => runHere(['verify', '--tools', ...words], env)
const calls = async () => {
  await app.gateway.app.limits.flushNow()
  return app.db.many(toolRows, app.orgId)
}
/** Returns the days that the command names when it finds the records changed. */
async function daysOf(...words: string[]): Promise<string[]> {
  const { code, err } = await verify(...words, '--json')
  expect(code, err).toBe(1)
  return JSON.parse(err).days
}

/** Two days of records: three calls and the approvals on the first one, two calls and a block on the second one. */
async function twoDays(): Promise<void> {
  registered = await register(app, 'mod', server.url, { price_inr_per_call: 2 })
  caller = await app.newAgent('caller')
  await app.call('PATCH', `/v1/me/agents/${caller.id}`, { allowed_tools: ['mod__*'] })
  expect((await call('echo', { text: 'spoken words' })).status).toBe(200)
  expect((await call('fails')).json.isError).toBe(true)
  const leaving = new AbortController()
  const left = call('wait', {}, leaving.signal).catch(() => null)
  await until(() => server.calls.length === 3)
  leaving.abort()
  await left
  expect((await call('echo', { text: 5 })).status).toBe(400)
  await until(async () => (await calls()).length === 3)
  expect((await calls()).map(({ outcome }) => outcome)).toEqual(['ok', 'failed', 'client_gone'])
  await app.db.exec(ageCalls, 2)
  await app.db.exec(ageActs, 2)
  for (const text of ['a', 'b']) expect((await call('echo', { text })).status).toBe(200)
  const blocked = await app.call('POST', `/me/tool-servers/${registered.id}/tools/block`, { tools: ['mod__big'] }, { cookie: await app.signIn() })
  expect(blocked.status).toBe(200)
  await until(async () => (await calls()).length === 5)
  await app.db.exec(ageCalls, 1)
  await app.db.exec(ageActs, 1)
}

/** Makes a change of the database, checks which days the command names, and takes the change back. */
async function showsIn(days: string[], change: () => Promise<unknown>, back: () => Promise<unknown>, ...words: string[]): Promise<void> {
  await change()
  expect(await daysOf(...words)).toEqual(days)
  await back()
  expect((await verify()).code).toBe(0)
}

describe('the records of tools', () => {
  it('TGW-15 every dialed call and every approval has a row without content, each day has a signed head, and brigade verify names the day of a changed or deleted row', async () => {
    await twoDays()
    const nowMs = Date.now()
    ;[earlier, later] = [istDay(nowMs - 2 * dayMs), istDay(nowMs - dayMs)] as [string, string]
    await app.gateway.app.jobs.runOnce('compliance.heads')
    await app.gateway.app.jobs.runOnce('compliance.heads')
    const { heads } = (await app.call('GET', '/v1/org/tool-audit/heads')).json
    // Seven approvals, and the line of what the registration found.
    expect(heads.map(({ payload }: { payload: { day: string; calls: object; acts: object } }) => payload)).toMatchObject([
      { day: earlier, org_id: app.orgId, calls: { count: 3 }, acts: { count: 8 }, previous: null },
      { day: later, org_id: app.orgId, calls: { count: 2 }, acts: { count: 1 }, previous: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ])
    const valid = await verify('--json')
    expect([valid.code, JSON.parse(valid.out)]).toMatchObject([0, { valid: true, rows: 14 }])
    writeFileSync(join(folder, 'heads.json'), valid.out)
    expect((await verify(join(folder, 'heads.json'))).code).toBe(0)
    const rows = (await app.call('GET', `/v1/org/tool-audit/rows?day=${earlier}`)).text
    expect(rows).toContain('"tool":"mod__echo"')
    expect(rows).not.toContain('spoken words')

    const [first, , , fourth] = await calls()
    const [changed, deleted] = [first?.requestId ?? '', fourth?.requestId ?? '']
    const { db } = app
    await showsIn(
      [earlier],
      () => db.exec(addValue, changed, 1),
      () => db.exec(addValue, changed, -1),
    )
    await showsIn(
      [later],
      () => db.exec(flipCall, deleted),
      () => db.exec(flipCall, deleted),
    )
    const approval = registered.hashes.get('mod__echo') ?? ''
    await showsIn(
      [earlier],
      () => db.exec(flipAct, approval),
      () => db.exec(flipAct, approval),
    )
    await showsIn(
      [later],
      () => db.exec(changeHead, later, '"count":2', '"count":1'),
      () => db.exec(changeHead, later, '"count":1,"first_day"', '"count":2,"first_day"'),
    )
    await showsIn(
      [later],
      () => db.exec(flipHead, earlier),
      () => db.exec(flipHead, earlier),
    )
    // Without the last head nothing is wrong with the others. Somebody who kept it sees that it is gone.
    await showsIn(
      [later],
      () => db.exec(flipHead, later),
      () => db.exec(flipHead, later),
      join(folder, 'heads.json'),
    )
    // Retention deletes rows. The heads remain.
    await db.exec(keepFrom, istDay(nowMs + dayMs))
    await db.exec(flipCall, changed)
    expect((await verify(join(folder, 'heads.json'))).code).toBe(0)
    await db.exec(flipCall, changed)
  })

  it('heads and rows are for owners, admins and auditors of the organisation, in pages, and a wrong day or cursor is refused', async () => {
    const paths = ['/v1/org/tool-audit/heads', `/v1/org/tool-audit/rows?day=${earlier}`]
    const member = await app.newMember('member')
    const auditor = await app.newMember('member', { capabilities: ['audit:view'] })
    const other = await app.otherOrg('Others of tools')
    for (const path of paths) {
      expect((await app.call('GET', path, undefined, { cookie: member.cookie })).status).toBe(403)
      expect((await app.call('GET', path, undefined, { token: caller.token })).status).toBe(403)
      expect((await app.call('GET', path, undefined, { cookie: auditor.cookie })).status).toBe(200)
      const theirs = (await app.call('GET', path, undefined, { token: other.key })).json
      expect(theirs.heads ?? theirs.rows).toEqual([])
    }
    const page = (await app.call('GET', '/v1/org/tool-audit/heads?limit=1')).json
    expect([page.heads.length, page.next_after]).toEqual([1, earlier])
    const rest = (await app.call('GET', `/v1/org/tool-audit/heads?after=${earlier}`)).json
    expect([rest.heads[0].payload.day, rest.next_after]).toEqual([later, null])
    for (const query of [
      'heads?after=x',
      'heads?limit=0',
      'heads?limit=101',
      'heads?after=2026-02-30',
      'rows',
      'rows?day=2026-02-30',
      `rows?day=${earlier}&cursor=x`,
    ])
      expect((await app.call('GET', `/v1/org/tool-audit/${query}`)).status, query).toBe(400)
    expect((await runHere(['verify'], env)).code).toBe(2)
    writeFileSync(join(folder, 'none.json'), '{}')
    expect((await verify(join(folder, 'none.json'))).code).toBe(2)
  })
})

describe('the root of a day', () => {
  it('is that of RFC 6962', () => {
    const roots = ['', '\u0000', '\u0010'].map((_, i, all) => {
      const root = new MerkleRoot()
      for (const text of all.slice(0, i + 1)) root.add(text)
      return root.hex()
    })
    expect([new MerkleRoot().hex(), ...roots]).toEqual([
      'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
      'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    ])
  })
})
