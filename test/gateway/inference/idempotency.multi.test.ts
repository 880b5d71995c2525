import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { chat, type Fleet, fleetAnswer, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const newest = statement<[], { id: bigint }>('test.newest_process', `select max(id) as "id" from processes`)
const processState = statement<[id: bigint], { state: string }>('test.process_state', `select state as "state" from processes where id = $1::bigint`)
const keyStates = statement<[orgId: number], { state: string }>(
  'test.once_states',
  `select state as "state" from idempotency_keys where org_id = $1::int order by reserved_at`,
)
const reserve = statement<[orgId: number, hash: Buffer, eventId: string | null, processId: bigint]>(
  'test.reserve_once',
  `insert into idempotency_keys (org_id, principal, key_hash, body_mac, state, event_id, process_id, reserved_at, expires_at)
   values ($1::int, 'key:1', $2::bytea, $2::bytea, 'reserved', $3::uuid, $4::bigint, now(), now() + interval '1 day')`,
)

describe.runIf(onPostgres)('idempotency keys over several processes', () => {
  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet()
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })
  const keyed = (process: GatewayProcess, as: string, body: object = {}) => chat(process, fleet.key, 20, body, { 'idempotency-key': as })

  test('IDEM-01 many calls with one idempotency key on three processes cause one provider call and one charge', async () => {
    const processes = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
    const replies = await Promise.all(Array.from({ length: 30 }, (_, index) => keyed(processes[index % 3] as GatewayProcess, 'spread')))
    const codes = replies.map(reply => (reply.status === 200 ? 'ok' : reply.json.error.code))
    expect(codes.filter(code => code === 'ok')).toHaveLength(1)
    expect(new Set(codes)).toEqual(new Set(['ok', 'idempotency_replayed']))
    expect(fleet.upstream.requests).toHaveLength(1)
    await until(async () => (await fleet.usage()).length === 1)
    for (const process of processes) await process.kill()
  })

  test('IDEM-01 a call whose process died after calling a provider is never repeated, and one that died before that may be made', async () => {
    const folder = fleet.newFolder()
    const victim = await fleet.start({}, folder)
    const { id } = await fleet.db.one(newest)
    fleet.upstream.hold()
    const lost = keyed(victim, 'killed').catch(() => null)
    await fleet.upstream.arrived(1)
    // Makes the state of a process that died between the reservation and the provider call, once with one usage event to come and once with several.
    await fleet.db.exec(reserve, fleet.orgId, randomBytes(32), '01890000-0000-7000-8000-0000000000aa', id)
    await fleet.db.exec(reserve, fleet.orgId, randomBytes(32), null, id)
    await victim.kill()
    expect(await lost).toBeNull()
    fleet.upstream.release()
    const survivor = await fleet.start({}, folder)
    await until(async () => (await fleet.db.one(processState, id)).state === 'closed', 60_000)
    const replay = await keyed(survivor, 'killed')
    expect([replay.status, replay.json.error.code, replay.headers.get('x-should-retry')]).toEqual([409, 'idempotency_replayed', 'false'])
    expect(replay.json.usage).toMatchObject({ outcome: 'interrupted', provider: 'fixed' })
    expect(fleet.upstream.requests).toHaveLength(1)
    expect((await fleet.db.many(keyStates, fleet.orgId)).map(row => row.state)).toEqual(['finished', 'unknown', 'unknown'])
    expect((await keyed(survivor, 'another')).status).toBe(200)
    expect(await fleet.violations()).toEqual([])
  })
})
