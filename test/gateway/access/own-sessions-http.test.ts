/** The sessions of a person: listed, and ended one by one or all others. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { browserFamily } from '../../../src/gateway/access/own-sessions/browser-family.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestMember } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { until } from '../../harness/until.ts'

const minuteMs = 60_000
const addSessions = statement<[userId: number, orgId: number, count: number, at: Date]>(
  'test.add_many_sessions',
  `insert into sessions (id_hash, user_id, org_id, created_at, expires_at)
   select sha256(convert_to('session ' || $1::int || ' ' || n, 'UTF8')), $1::int, $2::int, $4::timestamptz, $4::timestamptz + interval '30 days'
   from generate_series(1, $3::int) n`,
)
const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const chrome = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const edge = `${chrome} Edg/140.0.0.0`
const safari = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 14_0) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15'

describe('the sessions of a person', () => {
  let app: TestApp
  let clock: MovableClock
  beforeAll(async () => {
    clock = movableClock()
    app = await startApp({ clock, env: { CONSOLE_RPM: '100000', CACHE_TTL_MS: '1000' } })
  })
  afterAll(() => app.stop())

  const list = async (cookie: string) => (await app.call('GET', '/me/sessions', undefined, { cookie })).json.sessions
  const end = (cookie: string, id: number | string) => app.call('DELETE', `/me/sessions/${id}`, undefined, { cookie })
  const statusOf = async (cookie: string): Promise<number> => (await app.call('GET', '/me', undefined, { cookie })).status
  /** Signs a person in with a link in a browser, and returns the cookie. */
  async function arrive({ email }: TestMember, userAgent: string): Promise<string> {
    const { url } = await app.gateway.app.makeSignInLink(email)
    const token = new URL(url).searchParams.get('token') ?? ''
    const reply = await new TestBrowser().open(`${app.baseUrl}/auth/link`, { form: { token }, headers: { 'user-agent': userAgent } })
    return reply.setCookies[0]?.split(';')[0] ?? ''
  }

  test('CAPI-10 a person lists their sessions with browser, times and the current one, and ends one, all others, or the current one', async () => {
    const person = await app.newMember('member')
    const [inFirefox, inChrome, inEdge] = [await arrive(person, firefox), await arrive(person, chrome), await arrive(person, edge)]
    const sessions = await list(inChrome)
    const times = { created_at: expect.stringMatching(/Z$/), last_used_at: expect.stringMatching(/Z$/), expires_at: expect.stringMatching(/Z$/) }
    const org = { id: app.orgId, name: 'Test Org' }
    expect(sessions).toEqual([
      { id: expect.any(Number), current: true, browser: 'chrome', org, ...times },
      { id: expect.any(Number), current: false, browser: 'edge', org, ...times },
      { id: expect.any(Number), current: false, browser: 'firefox', org, ...times },
      { id: expect.any(Number), current: false, browser: null, org, ...times },
    ])
    const idOf = (browser: string): number => sessions.find((session: { browser: string }) => session.browser === browser).id
    expect((await end(inChrome, idOf('firefox'))).json).toEqual({ ok: true, id: idOf('firefox') })
    expect([await statusOf(inFirefox), await statusOf(inChrome), await statusOf(inEdge), await statusOf(person.cookie)]).toEqual([401, 200, 200, 200])
    expect((await end(inChrome, idOf('firefox'))).status, 'it has ended').toBe(404)

    const others = await app.call('DELETE', '/me/sessions', undefined, { cookie: inChrome })
    expect(others.json).toEqual({ ok: true, ended: 2 })
    expect([await statusOf(inChrome), await statusOf(inEdge), await statusOf(person.cookie)]).toEqual([200, 401, 401])
    expect(await list(inChrome)).toHaveLength(1)

    const last = await end(inChrome, idOf('chrome'))
    expect([last.status, last.headers.get('set-cookie')]).toEqual([200, expect.stringMatching(/^br_session=;.*Max-Age=0/i)])
    expect(await statusOf(inChrome)).toBe(401)
    const owner = await app.signIn()
    for (const act of ['endSession', 'endOtherSessions'])
      expect(
        (await app.call('GET', `/me/audit?act=${act}&actor=user:${person.userId}`, undefined, { cookie: owner })).json.entries.length,
        act,
      ).toBeGreaterThan(0)
  })

  test('the time of the last use follows the use to within minutes, and an expired session is not listed', async () => {
    const person = await app.newMember('member')
    const [used, unused] = [await app.signIn(person.userId), await app.signIn(person.userId)]
    const before = (await list(used))[0]
    clock.advance(10 * minuteMs)
    const isNoted = async (): Promise<boolean> => {
      const [current] = await list(used)
      return current.current && Date.parse(current.last_used_at) >= Date.parse(before.last_used_at) + 10 * minuteMs
    }
    await until(isNoted, 'the use is noted')
    const idle = (await list(used)).filter((session: { current: boolean }) => !session.current)
    for (const session of idle) expect(Date.parse(session.last_used_at)).toBeLessThan(Date.parse(before.last_used_at) + minuteMs)
    expect(idle).toHaveLength(2)
    clock.advance(40 * 24 * 60 * minuteMs)
    const fresh = await app.signIn(person.userId)
    expect(await list(fresh)).toMatchObject([{ current: true }])
    expect(await statusOf(unused)).toBe(401)
  })

  test('nobody sees or ends the session of another person, and an agent has none', async () => {
    const [ann, ben] = [await app.newMember('owner'), await app.newMember('member')]
    const [theirs] = await list(ben.cookie)
    expect((await list(ann.cookie)).map((session: { id: number }) => session.id)).not.toContain(theirs.id)
    for (const id of [theirs.id, 999_999, 'x', 0]) {
      const { status, json } = await end(ann.cookie, id)
      expect([status, json.error.code], String(id)).toEqual([404, 'not_found'])
    }
    expect((await app.call('DELETE', '/me/sessions', undefined, { cookie: ann.cookie })).json.ended).toBe(0)
    expect(await statusOf(ben.cookie)).toBe(200)
    const { token } = await app.newAgent('session reader')
    expect((await app.call('GET', '/me/sessions', undefined, { token })).json).toEqual({ sessions: [] })
    expect((await app.call('DELETE', '/me/sessions', undefined, { token })).status).toBe(403)
    const foreign = await app.call('DELETE', '/me/sessions', undefined, { cookie: ben.cookie, headers: { origin: 'https://evil.example' } })
    expect([foreign.status, foreign.json.error.code]).toEqual([403, 'forbidden'])
    expect(foreign.json.error.message).toContain('came from a page of another')
  })

  test('a list has at most 200 sessions with the current one in it, and all others end, also when there are more', async () => {
    const person = await app.newMember('member')
    await app.db.exec(addSessions, person.userId, app.orgId, 1_200, new Date(clock.nowMs() + minuteMs))
    const sessions = await list(person.cookie)
    expect(sessions).toHaveLength(200)
    expect(sessions[0].current).toBe(true)
    expect((await app.call('DELETE', '/me/sessions', undefined, { cookie: person.cookie })).json.ended).toBe(1_200)
    expect(await list(person.cookie)).toHaveLength(1)
  })

  test('the hash of a cookie and the user-agent header are in no reply, no log line and no row', async () => {
    const person = await app.newMember('member')
    const mark = 'x-unusual-browser-7f3a'
    const cookie = await arrive(person, `${firefox} ${mark}`)
    const everywhere = [JSON.stringify(await list(cookie)), app.logLines.join('\n'), await app.dump()].join('\n')
    expect(everywhere).not.toContain(mark)
    expect(everywhere).not.toContain(cookie.split('=')[1]?.split('.')[0] ?? '-')
  })

  test('the family of a browser is known from its header, also when the browser imitates another', () => {
    const families = [firefox, chrome, edge, safari, `${chrome} OPR/120.0`, 'curl/8.5.0', 'something else', '', undefined].map(browserFamily)
    expect(families).toEqual(['firefox', 'chrome', 'edge', 'safari', 'opera', 'curl', 'other', null, null])
  })
})
