import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OrgLimits } from '../../../src/gateway/limits/org-limits.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { silentLog } from '../../../src/platform/observe/log.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, type Fleet, fleetAnswer, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { discoverPost } from '../../mcp/raw-clients.ts'

const liveKeys = statement<[orgId: number], { keys: number }>(
  'test.live_keys',
  `select count(*)::int as "keys" from api_keys where org_id = $1::int and revoked_at is null`,
)

const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe.runIf(onPostgres)('limits of an organisation over several processes', () => {
  let fleet: Fleet
  let members: GatewayProcess[]
  let limits: OrgLimits
  beforeAll(async () => {
    fleet = await startFleet()
    const folder = fleet.newFolder()
    members = await Promise.all(times(3).map(() => fleet.start({}, folder)))
    const controlLog = new ControlLog({ db: fleet.db, clock: systemClock, log: silentLog, pollMs: 1000 })
    limits = new OrgLimits({ db: fleet.db, clock: systemClock, config: loadConfig({}), controlLog })
  })
  afterAll(() => fleet?.stop())
  const member = (i: number): GatewayProcess => members[i % members.length] as GatewayProcess

  test('HARD-20 the limits of agents and keys of an organisation are exact over all processes, also for concurrent requests', async () => {
    const { keys: had } = await fleet.db.one(liveKeys, fleet.orgId)
    await limits.set(fleet.orgId, { agents: 5, keys: had + 4 }, false)
    const made = await Promise.all(times(15).map(i => call(member(i), fleet.key, 'POST', '/v1/me/agents', { name: `agent ${i}` })))
    expect(made.filter(reply => reply.status < 300).length).toBe(5)
    expect(new Set(made.filter(reply => reply.status >= 300).map(reply => reply.json.error.code))).toEqual(new Set(['org_limit_reached']))
    const cookie = await fleet.signIn()
    const keyOf = async (i: number) => {
      const headers = { cookie, 'content-type': 'application/json', origin: 'http://brigade.test' }
      const reply = await fetch(`${member(i).baseUrl}/me/keys`, { method: 'POST', headers, body: JSON.stringify({ name: `many ${i}` }) })
      return { status: reply.status, code: ((await reply.json()) as { error?: { code: string } }).error?.code }
    }
    const replies = await Promise.all(times(15).map(keyOf))
    expect(replies.filter(({ status }) => status < 300).length).toBe(4)
    expect(new Set(replies.filter(({ status }) => status >= 300).map(({ code }) => code))).toEqual(new Set(['org_limit_reached']))
    expect(await fleet.db.one(liveKeys, fleet.orgId)).toEqual({ keys: had + 4 })
  })

  test('HARD-20 running calls of an organisation can reach its limit over all processes but never exceed it', async () => {
    await limits.set(fleet.orgId, { running: 3, agents: 5, keys: 1000 }, false)
    const hold = () => fleet.upstream.script(request => ({ ...fleetAnswer(request), hold: true }))
    const refused: string[] = []
    const round = async (): Promise<number> => {
      fleet.upstream.release()
      refused.length = 0
      fleet.upstream.reset()
      hold()
      const calls = times(18).map(i => chat(member(i), fleet.key, 10))
      for (const reply of calls) void reply.then(({ status, json }) => status === 200 || refused.push(json.error.code)).catch(() => undefined)
      await until(() => refused.length + fleet.upstream.requests.length === 18)
      const count = fleet.upstream.requests.length
      fleet.upstream.release()
      await Promise.all(calls)
      return count
    }
    // A process has received the limit when one of its calls holds a unit of the organisation's counter.
    await until(async () => (await round()) === 3, 30_000)
    for (const count of [await round(), await round(), await round()]) expect(count).toBeLessThanOrEqual(3)
    expect(new Set(refused)).toEqual(new Set(['concurrency_limit_reached']))
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
    await limits.set(fleet.orgId, { running: 0 }, false)
  })

  test('HARD-20 requests of an organisation in one minute can reach its limit over all processes but never exceed it', async () => {
    await limits.set(fleet.orgId, { rpm: 20 }, false)
    const served = async () =>
      (await Promise.all(times(60).map(i => call(member(i), fleet.key, 'GET', '/v1/models')))).filter(reply => reply.status === 200).length
    const minute = () => Math.floor(Date.now() / 60_000)
    // The test uses a new minute, because earlier calls count in the current one.
    let reached = -1
    await until(async () => {
      const [before, count] = [minute(), await served()]
      if (count === 20 && minute() === before) reached = before
      return reached >= 0
    }, 90_000)
    const more = await served()
    if (minute() === reached) expect(more).toBe(0)
    else expect(more).toBeLessThanOrEqual(20)
    await limits.set(fleet.orgId, { rpm: 0 }, false)
  }, 120_000)

  test('HARD-20 change streams of an organisation never exceed its limit over all processes, and closing one makes room on every process', async () => {
    await limits.set(fleet.orgId, { rpm: 0, streams: 4 }, false)
    const listen = async (i: number) => {
      const cut = new AbortController()
      const params = { notifications: { resourceSubscriptions: ['brigade://whoami'] } }
      const reply = await discoverPost(member(i).baseUrl, fleet.key, 'subscriptions/listen', params, cut.signal)
      const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream') === true
      if (!isStream) await reply.text()
      return { isStream, close: () => cut.abort() }
    }
    let open: Awaited<ReturnType<typeof listen>>[] = []
    // Waits until every process has received the limit and unused leases have come back.
    await until(async () => {
      for (const stream of open) stream.close()
      open = (await Promise.all(times(12).map(listen))).filter(({ isStream }) => isStream)
      return open.length === 4
    }, 30_000)
    expect((await Promise.all(times(6).map(listen))).map(({ isStream }) => isStream)).toEqual(times(6).map(() => false))
    for (const i of times(3)) {
      open.shift()?.close()
      await until(async () => {
        const stream = await listen(i)
        if (stream.isStream) open.push(stream)
        return stream.isStream
      }, 30_000)
    }
    expect((await Promise.all(times(6).map(listen))).map(({ isStream }) => isStream)).toEqual(times(6).map(() => false))
    for (const stream of open) stream.close()
    expect(await fleet.violations()).toEqual([])
  })
})
