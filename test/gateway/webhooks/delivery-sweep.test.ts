import { expect, test } from 'vitest'
import { sweepWebhooks } from '../../../src/gateway/webhooks/delivery/delivery-sweep.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { testDatabase } from '../../harness/database.ts'

const left = statement<[], { events: string[]; deliveries: string[] }>(
  'test.webhook_sweep_left',
  `select array(select id from webhook_events order by id) as "events", array(select event_id || ' ' || status from webhook_deliveries order by 1) as "deliveries"`,
)

test('the sweep deletes old settled deliveries and old events; it keeps unsent deliveries and budget crossings of the present month', async () => {
  const database = await testDatabase()
  const { db } = database
  // The 25th, so that the month began before the limit of age.
  const nowMs = Date.parse('2026-11-25T12:00:00+05:30')
  const at = (day: string): string => `${Date.parse(`${day}T12:00:00+05:30`) / 1000}`
  const event = (id: string, type: string, day: string): string =>
    `insert into webhook_events (org_id, id, type, created, data, body) values (1, '${id}', '${type}', ${at(day)}, '{}', '{}');`
  const delivery = (id: string, status: string, settled: string | null): string =>
    `insert into webhook_deliveries (id, org_id, endpoint_id, event_id, event_seq, type, status, due_at, created_at, settled_at)
     values (gen_random_uuid(), 1, 1, '${id}', 1, 'ping', '${status}', ${settled === null ? 'now()' : 'null'}, now(), ${settled === null ? 'null' : `to_timestamp(${at(settled)})`});`
  await db.script(
    [
      event('old', 'key.created', '2026-11-10') + delivery('old', 'acknowledged', '2026-11-10'),
      event('dead', 'key.created', '2026-11-10') + delivery('dead', 'dead', '2026-11-11'),
      event('open', 'key.created', '2026-11-10') + delivery('open', 'failed', null) + delivery('open', 'acknowledged', '2026-11-10'),
      event('unheard', 'key.created', '2026-11-10'),
      event('crossing', 'budget.warn', '2026-11-02') + delivery('crossing', 'acknowledged', '2026-11-02'),
      event('past-crossing', 'budget.block', '2026-10-31'),
      event('new', 'key.created', '2026-11-20') + delivery('new', 'acknowledged', '2026-11-20'),
    ].join('\n'),
  )
  expect(await sweepWebhooks(db, nowMs, 7)).toBe(8)
  expect(await db.one(left)).toEqual({ events: ['crossing', 'new', 'open'], deliveries: ['new acknowledged', 'open failed'] })
  expect(await sweepWebhooks(db, nowMs, 7)).toBe(0)
  await database.dispose()
})
