import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { hashKey } from '../../../src/platform/security/secrets.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { onPostgres } from '../../harness/database.ts'
import { type Fleet, startFleet } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'
import { until } from '../../harness/until.ts'

const addLink = statement<[tokenHash: Buffer, orgId: number]>(
  'test.add_link',
  `insert into sign_in_links (token_hash, user_id, expires_at)
   select $1::bytea, user_id, now() + interval '15 minutes' from org_members where org_id = $2::int`,
)

describe.runIf(onPostgres)('sessions in several processes', () => {
  let fleet: Fleet
  let one: GatewayProcess
  let two: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet()
    ;[one, two] = await Promise.all([fleet.start(), fleet.start()])
  })
  afterAll(() => fleet.stop())

  /** Signs the owner in at one process and returns the cookie. */
  async function signIn(process: GatewayProcess): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await fleet.db.exec(addLink, hashKey(token), fleet.orgId)
    const reply = await new TestBrowser().open(`${process.baseUrl}/auth/link`, { form: { token } })
    expect(reply.status).toBe(302)
    return reply.setCookies[0]?.split(';')[0] ?? ''
  }
  const statusOf = async (process: GatewayProcess, cookie: string): Promise<number> =>
    (await fetch(`${process.baseUrl}/me/memory-store`, { headers: { cookie } })).status

  test('a session from one process works at another; when it ends at one process, the other refuses it within two seconds', async () => {
    const cookie = await signIn(one)
    expect([await statusOf(one, cookie), await statusOf(two, cookie)]).toEqual([200, 200])
    expect((await fetch(`${one.baseUrl}/auth/logout`, { method: 'POST', headers: { cookie } })).status).toBe(200)
    expect(await statusOf(one, cookie)).toBe(401)
    await until(async () => (await statusOf(two, cookie)) === 401, 'the other process heard of it', 2_000)
  })

  test('when a person ends another session or all others at one process, the other process refuses them within two seconds', async () => {
    const [mine, second, third] = [await signIn(one), await signIn(two), await signIn(two)]
    const list = async (): Promise<{ id: number; current: boolean }[]> => {
      const reply = await fetch(`${one.baseUrl}/me/sessions`, { headers: { cookie: mine } })
      return ((await reply.json()) as { sessions: { id: number; current: boolean }[] }).sessions
    }
    for (const cookie of [mine, second, third]) expect([await statusOf(one, cookie), await statusOf(two, cookie)]).toEqual([200, 200])
    const end = (path: string) => fetch(`${one.baseUrl}/me/sessions${path}`, { method: 'DELETE', headers: { cookie: mine } })
    const newest = (await list()).find(session => !session.current)
    expect((await end(`/${newest?.id}`)).status).toBe(200)
    await until(async () => (await statusOf(two, third)) === 401, 'the other process refuses it', 2_000)
    expect(await statusOf(two, second)).toBe(200)
    expect((await end('')).status).toBe(200)
    await until(async () => (await statusOf(two, second)) === 401, 'the other process refuses all others', 2_000)
    expect(await statusOf(two, mine)).toBe(200)
    expect(await list()).toMatchObject([{ current: true }])
  })

  test('when a link is used at two processes concurrently, it works at only one of them', async () => {
    const token = randomBytes(32).toString('base64url')
    await fleet.db.exec(addLink, hashKey(token), fleet.orgId)
    const replies = await Promise.all([one, two, one, two].map(process => new TestBrowser().open(`${process.baseUrl}/auth/link`, { form: { token } })))
    expect(replies.map(reply => reply.status).sort()).toEqual([302, 400, 400, 400])
  })
})
