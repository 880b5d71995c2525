import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { endMembership, usersOf } from './people-rows.ts'

describe('one-time sign-in links', () => {
  let app: TestApp
  let clock: MovableClock
  beforeAll(async () => {
    clock = movableClock()
    app = await startApp({ clock })
  })
  afterAll(() => app.stop())
  // biome-ignore lint/suspicious/noExplicitAny: the commands print arbitrary objects.
  const run = (name: string, args: Record<string, unknown>): Promise<any> => adminHandler(app.gateway.app)({ name, args })
  const linkFor = async (email: string): Promise<string> => (await run('sign-in', { email })).url
  const press = (browser: TestBrowser, url: string, headers: Record<string, string> = {}) =>
    browser.open(`${app.baseUrl}/auth/link`, { form: { token: new URL(url).searchParams.get('token') ?? '' }, headers })
  const expectUsedUp = (reply: { status: number; json: { error: { code: string; message: string } }; setCookies: readonly string[] }) => {
    expect([reply.status, reply.json?.error.code, reply.setCookies]).toEqual([400, 'bad_request', []])
    expect(reply.json.error.message).toContain('Ask the operator')
  }

  test('TEST-06 admin create makes an organisation with its owner and key, admin key makes a key with scope inference, and admin sign-in makes a link that signs the owner in', async () => {
    const created = await run('create', { email: 'first@team.test', org: 'First Team' })
    const whoami = (await app.call('GET', '/v1/me/whoami', undefined, { token: created.key })).json
    expect(whoami).toMatchObject({ org: { id: created.org_id, name: 'First Team' }, role: 'owner', scope: 'full' })
    const key = await run('key', { org: created.org_id, name: 'agents', scope: 'inference', email: 'first@team.test' })
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key.key })).json).toMatchObject({ scope: 'inference', org: { id: created.org_id } })

    const { url, expires_at, email } = await run('sign-in', { email: 'FIRST@team.test' })
    expect(url).toMatch(new RegExp(`^${app.baseUrl}/auth/link\\?token=[A-Za-z0-9_-]{43}$`))
    expect(email).toBe('first@team.test')
    expect(Math.round((Date.parse(expires_at) - clock.nowMs()) / 60_000)).toBe(15)
    const browser = new TestBrowser()
    const page = await browser.open(url)
    expect(page.text).toContain('first@team.test')
    const reply = await press(browser, url, { origin: app.baseUrl })
    expect([reply.status, reply.location]).toEqual([302, `${app.baseUrl}/me`])
    expect(reply.setCookies).toEqual([expect.stringMatching(/^br_session=.*; HttpOnly; SameSite=Lax$/)])
    expect((await browser.open(`${app.baseUrl}/me`)).json).toMatchObject({ email: 'first@team.test', role: 'owner' })
  })

  test('the page of a link can be opened any number of times; pressing its button uses the link up', async () => {
    const url = await linkFor('owner@test-org.test')
    for (let look = 0; look < 3; look++) {
      const page = await new TestBrowser().open(url)
      expect([page.status, page.setCookies]).toEqual([200, []])
      expect(Object.fromEntries(page.headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        // With the policy `no-referrer`, the browser would send the form with `Origin: null`.
        'referrer-policy': 'strict-origin',
        'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'/),
      })
    }
    expect((await press(new TestBrowser(), url)).status).toBe(302)
    expectUsedUp(await press(new TestBrowser(), url))
    expectUsedUp(await new TestBrowser().open(url))
  })

  test('when many people use a link concurrently, only one of them is signed in', async () => {
    const url = await linkFor('owner@test-org.test')
    const replies = await Promise.all(Array.from({ length: 8 }, () => press(new TestBrowser(), url)))
    expect(replies.filter(reply => reply.status === 302).length).toBe(1)
    expect(replies.flatMap(reply => reply.setCookies).length).toBe(1)
  })

  test('a link expires', async () => {
    const url = await linkFor('owner@test-org.test')
    clock.advance(900_001)
    expectUsedUp(await press(new TestBrowser(), url))
    expectUsedUp(await new TestBrowser().open(url))
  })

  test('a page of another site cannot press the button, and the link stays valid', async () => {
    const url = await linkFor('owner@test-org.test')
    for (const headers of [{ origin: 'https://evil.test' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[]) {
      const reply = await press(new TestBrowser(), url, headers)
      expect([reply.status, reply.json.error.code, reply.setCookies]).toEqual([403, 'forbidden', []])
    }
    expect((await press(new TestBrowser(), url)).status).toBe(302)
  })

  test('an invalid token is 400, and the page does not repeat it', async () => {
    for (const token of ['', 'short', '<script>alert(1)</script>', 'x'.repeat(43)]) {
      const browser = new TestBrowser()
      for (const accept of ['application/json', 'text/html']) {
        const reply = await browser.open(`${app.baseUrl}/auth/link?token=${encodeURIComponent(token)}`, { headers: { accept } })
        expect(reply.status).toBe(400)
        expect(reply.text).not.toContain('<script>')
      }
      expect((await browser.open(`${app.baseUrl}/auth/link`, { form: { token } })).status).toBe(400)
    }
    expect((await app.call('POST', '/auth/link', 'x'.repeat(5000), { token: null })).status).toBe(413)
    expect((await app.call('POST', '/auth/link', {}, { token: null })).json.error.message).toContain('token')
  })

  test('the page escapes the mail address', async () => {
    await app.gateway.app.orgs.createOrg({ name: 'Odd', ownerEmail: "o'brien&sons@odd.test" })
    const page = await new TestBrowser().open(await linkFor("o'brien&sons@odd.test"))
    expect(page.text).toContain('<strong>o&#39;brien&amp;sons@odd.test</strong>')
  })

  test('the database does not contain the token', async () => {
    const token = new URL(await linkFor('owner@test-org.test')).searchParams.get('token') ?? ''
    expect(await app.dump()).not.toContain(token)
  })

  test('when the address is unknown, the command says how to make an organisation', async () => {
    await expect(run('sign-in', { email: 'nobody@nowhere.test' })).rejects.toThrow('brigade admin create --email nobody@nowhere.test')
  })

  test('a person without an organisation gets a personal one', async () => {
    const { userId, orgId } = await app.otherOrg('Left Behind')
    await app.db.exec(endMembership, orgId, userId)
    expect((await press(new TestBrowser(), await linkFor('owner@left-behind.test'))).status).toBe(302)
    expect((await usersOf(app.db, 'owner@left-behind.test')).filter(row => row.status === 'active')).toEqual([
      expect.objectContaining({ kind: 'personal', role: 'owner', orgName: 'owner' }),
    ])
  })

  test('making a link, using a link and signing out are in the audit trail', async () => {
    const browser = new TestBrowser()
    await press(browser, await linkFor('owner@test-org.test'))
    await browser.open(`${app.baseUrl}/auth/logout`, { method: 'POST' })
    const { entries } = (await app.call('GET', '/me/audit', undefined, { cookie: await app.signIn() })).json
    const acts = entries.map((entry: { act: string; outcome: string }) => `${entry.act} ${entry.outcome}`)
    expect(acts).toEqual(expect.arrayContaining(['signInByLink ok', 'signOut ok']))
    expect(await app.dump()).toContain(`operator,,makeSignInLink,user=${app.userId}`)
  })

  test('a person with an open invitation gets a link before they are a member; an unknown person gets no link', async () => {
    await expect(linkFor('newcomer@else.test')).rejects.toThrow('no invitation waits for it')
    const invited = await app.call('POST', '/me/members', { email: 'Newcomer@else.test', role: 'member' }, { cookie: await app.signIn() })
    const browser = new TestBrowser()
    await press(browser, await linkFor('newcomer@else.test'))
    const { id } = (await browser.open(`${app.baseUrl}/me/invitations`)).json.invitations[0]
    expect(id).toBe(invited.json.id)
    expect((await browser.open(`${app.baseUrl}/me`)).json).toMatchObject({ email: 'Newcomer@else.test', role: 'owner', org: { kind: 'personal' } })
    expect((await browser.open(`${app.baseUrl}/me/invitations/${id}/accept`, { method: 'POST' })).status).toBe(200)
    await app.call('POST', '/me/members', { email: 'withdrawn@else.test', role: 'member' }, { cookie: await app.signIn() })
    const pending = (await app.call('GET', '/me/members', undefined, { cookie: await app.signIn() })).json.pending[0]
    await app.call('DELETE', `/me/members/pending/${pending.id}`, undefined, { cookie: await app.signIn() })
    await expect(linkFor('withdrawn@else.test')).rejects.toThrow('no invitation waits for it')
  })

  test('the sweep deletes expired links', async () => {
    await linkFor('owner@test-org.test')
    clock.advance(900_001)
    const before = (await app.dump()).length
    await app.gateway.app.jobs.runOnce('access.sweep')
    expect((await app.dump()).length).toBeLessThan(before)
  })

  test('when no provider is configured, /auth says how the operator makes a link', async () => {
    const page = await new TestBrowser().open(`${app.baseUrl}/auth`)
    expect(page.status).toBe(200)
    expect(page.text).toContain('brigade admin sign-in --email')
    expect(page.text).toContain('No identity provider is configured')
  })
})
