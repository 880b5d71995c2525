import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'

const checks = statement<[], { collectionId: number; at: Date }>(
  'test.checks_of_all',
  'select collection_id as "collectionId", at from collection_checks order by collection_id, at',
)
const mails = statement<[], { onceKey: string }>('test.alert_mails', `select once_key as "onceKey" from emails where template = 'collection_alert' order by id`)

describe.runIf(onPostgres)('monitoring in several processes', () => {
  const everyS = 2
  let fleet: Fleet
  let members: GatewayProcess[]
  let cookie: string
  beforeAll(async () => {
    fleet = await startFleet({ MONITOR_EVERY_S: String(everyS), ALERT_WINDOW_S: '60' })
    members = await Promise.all([0, 1, 2].map(() => fleet.start()))
    cookie = await fleet.signIn()
  })
  afterAll(() => fleet?.stop())

  async function console_(through: number, method: string, path: string, body?: unknown) {
    const response = await fetch((members[through] as GatewayProcess).baseUrl + path, {
      method,
      headers: { cookie, origin: 'http://brigade.test', 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
    const json: any = await response.json()
    expect(response.status, JSON.stringify(json)).toBeLessThan(300)
    return json
  }

  test('no round runs twice, an alert is sent once, and a killed process loses only the rounds that it was running', async () => {
    fleet.upstream.script(() => ({ status: 500, body: { error: { message: 'down' } } }))
    const slugs: string[] = []
    for (let count = 0; count < 6; count++) {
      const { slug } = await console_(count % 3, 'POST', '/me/collections', { name: `Many ${count}`, model: 'fixed-model', steps: ['fixed-model'] })
      await console_(count % 3, 'POST', `/me/collections/${slug}/alerts`, { metric: 'error_rate', threshold: 0.5, channel: 'email' })
      slugs.push(slug)
    }
    await Promise.all(slugs.map((slug, count) => console_((count + 1) % 3, 'POST', `/me/collections/${slug}/monitor`, { monitored: true })))
    const written = () => fleet.db.many(checks)
    await until(async () => (await written()).length >= 6 * 5, 'five rounds of each', 40_000)
    await members[0]?.kill()
    const known = (await written()).length
    await until(async () => (await written()).length >= known + 6 * 3, 'three more rounds of each by the others', 40_000)
    for (const slug of slugs) await console_(1, 'POST', `/me/collections/${slug}/monitor`, { monitored: false })
    const rows = await written()
    // When a process dies or monitoring ends during a round, the round's canaries were sent but its results are not stored.
    expect(fleet.upstream.requests.length - rows.length).toBeGreaterThanOrEqual(0)
    expect(fleet.upstream.requests.length - rows.length).toBeLessThanOrEqual(12)
    const pauses = rows.flatMap((row, index) =>
      index > 0 && rows[index - 1]?.collectionId === row.collectionId ? [row.at.getTime() - (rows[index - 1]?.at.getTime() ?? 0)] : [],
    )
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(everyS * 1000 * 0.9 - 5)
    const told = (await fleet.db.many(mails)).map(({ onceKey }) => onceKey.split(':')[1])
    expect([told.length, new Set(told).size]).toEqual([6, 6])
    // No round runs any more.
    const sent = fleet.upstream.requests.length
    await until(
      async () => (await Promise.all(slugs.map(slug => console_(2, 'GET', `/me/collections/${slug}/health`)))).every(({ monitored }) => !monitored),
      'off',
    )
    expect(fleet.upstream.requests.length - sent).toBeLessThanOrEqual(6)
  })

  test('concurrent requests for a round at several processes share one round', async () => {
    fleet.upstream.reset()
    const { slug } = await console_(1, 'POST', '/me/collections', { name: 'Shared', model: 'fixed-model', steps: ['fixed-model'] })
    fleet.upstream.hold()
    const asked = [1, 2, 1, 2].map(through => console_(through, 'POST', `/me/collections/${slug}/check`))
    await fleet.upstream.arrived(1)
    fleet.upstream.release()
    const replies = await Promise.all(asked)
    expect([fleet.upstream.requests.length, replies.map(({ health }) => health[0].checks)]).toEqual([1, [1, 1, 1, 1]])
  })
})
