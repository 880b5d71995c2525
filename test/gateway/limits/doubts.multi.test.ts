import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, type Fleet, fleetAnswer, startFleet } from '../../harness/fleet.ts'
import { until } from '../../harness/until.ts'

const ageBeat = statement<[id: bigint]>('test.doubts_age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)
const reservedBy = statement<[], { processId: bigint }>(
  'test.doubts_reserved_by',
  `select process_id as "processId" from idempotency_keys where state = 'reserved'`,
)

describe.runIf(onPostgres)('calls of a process whose disk is lost', () => {
  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet()
  })
  afterAll(() => fleet?.stop())

  test('EDGE-23 calls of a process with a lost disk are listed as in doubt, and giving up the process immediately frees their idempotency keys', {
    timeout: 240_000,
  }, async () => {
    const folder = fleet.newFolder()
    const [survivor, victim] = [await fleet.start(), await fleet.start({}, folder)]
    const ask = (process: { readonly baseUrl: string }) =>
      call(
        process,
        fleet.key,
        'POST',
        '/v1/chat/completions',
        { model: 'fixed-model', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] },
        { 'idempotency-key': 'given-up' },
      )
    fleet.upstream.script(() => ({ hang: true }))
    void ask(victim).catch(() => undefined)
    await until(async () => (await fleet.db.many(reservedBy)).length === 1, 'the reservation')
    const { processId } = await fleet.db.one(reservedBy)
    await victim.kill()
    renameSync(join(folder, 'journal'), join(folder, 'lost'))
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
    const taken = await ask(survivor)
    expect([taken.status, taken.json.error.code]).toEqual([409, 'idempotency_in_progress'])

    await fleet.db.exec(ageBeat, processId)
    const listed = JSON.parse((await fleet.command('admin', 'in-doubt', 'list', '--json')).out)
    expect(listed.calls).toEqual([expect.objectContaining({ org_id: fleet.orgId, state: 'reserved', process: Number(processId) })])
    expect((await fleet.command('admin', 'in-doubt', 'discard', '--process', String(processId))).code).toBe(0)
    expect((await ask(survivor)).status).toBe(200)
    expect(await fleet.violations()).toEqual([])
  })
})
