import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type GithubServer, startGithub } from '../../harness/github-server.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'
import { addMembership, endMembership, person, usersOf } from './people-rows.ts'

describe('sign-in with GitHub, and one person with both providers', () => {
  let github: GithubServer
  let google: GoogleServer
  let app: TestApp
  beforeAll(async () => {
    ;[github, google] = await Promise.all([startGithub(), startGoogle()])
    app = await startApp({ env: { ...github.env, ...google.env } })
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([github.stop(), google.stop()])
  })
  beforeEach(() => {
    github.apiStatus = null
    github.clientSecret = 'github-client-secret'
  })

  const isCallback = (url: string): boolean => url.includes('/callback?')
  /** Follows the sign-in up to the address to which the provider sends the browser back. */
  const toCallback = async (browser: TestBrowser, name: string) => (await browser.follow(`${app.baseUrl}/auth/${name}`, isCallback)).location ?? ''
  const signIn = async (name: 'google' | 'github', browser = new TestBrowser()) => browser.open(await toCallback(browser, name))
  const account = (id: number, email: string, more: object = {}) => {
    github.person = {
      id,
      login: `login${id}`,
      name: `Person ${id}`,
      avatar_url: `https://avatars.test/${id}`,
      emails: [{ email, primary: true, verified: true }],
      ...more,
    }
  }

  test('the code is exchanged with the client secret and the PKCE verifier, and the person is signed in', async () => {
    account(1, 'one@example.test')
    const browser = new TestBrowser()
    const before = github.exchanges()
    const start = new URL((await browser.open(`${app.baseUrl}/auth/github`)).location ?? '')
    expect(start.href.startsWith(`${github.url}/login/oauth/authorize?`)).toBe(true)
    expect(Object.fromEntries(start.searchParams)).toMatchObject({ client_id: 'github-client', scope: 'read:user user:email', code_challenge_method: 'S256' })
    const reply = await signIn('github', browser)
    expect(reply.status).toBe(302)
    expect(github.exchanges()).toBe(before + 1)
    expect((await browser.open(`${app.baseUrl}/me/memory-store`)).status).toBe(200)
    expect(await person(app.db, 'one@example.test')).toMatchObject({ name: 'Person 1', avatarUrl: 'https://avatars.test/1' })
  })

  test('a code from another sign-in is refused, because its PKCE challenge differs', async () => {
    const [mine, theirs] = [new TestBrowser(), new TestBrowser()]
    const stolen = new URL(await toCallback(theirs, 'github')).searchParams.get('code') ?? ''
    const back = new URL(await toCallback(mine, 'github'))
    back.searchParams.set('code', stolen)
    const reply = await mine.open(back.href)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(reply.setCookies).toEqual([])
  })

  test('a state of a sign-in with Google does not finish a sign-in with GitHub', async () => {
    const browser = new TestBrowser()
    const back = (await toCallback(browser, 'google')).replace('/auth/google/', '/auth/github/')
    const reply = await browser.open(back)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
  })

  test('a wrong client secret gives an error for the operator, and a broken API makes no session', async () => {
    github.clientSecret = 'changed'
    const wrongSecret = await signIn('github')
    expect([wrongSecret.status, wrongSecret.json.error.code]).toEqual([400, 'unavailable'])
    expect(wrongSecret.json.error.message).toContain('operator')
    github.clientSecret = 'github-client-secret'
    github.apiStatus = 500
    const broken = await signIn('github')
    expect([broken.status, broken.setCookies]).toEqual([400, []])
    expect(JSON.stringify(app.logLines)).not.toContain('gho_')
  })

  test('SESS-08 the first sign-in makes the user, a personal organisation with their name, and their ownership of it; the second sign-in makes nothing', async () => {
    account(8, 'Ada.Lovelace@Example.test', { name: 'Ada Lovelace' })
    const browser = new TestBrowser()
    for (let round = 0; round < 2; round++) {
      const reply = await signIn('github', browser)
      expect(reply.status).toBe(302)
      const found = await usersOf(app.db, 'ada.lovelace@example.test')
      expect(found).toEqual([
        { email: 'Ada.Lovelace@Example.test', name: 'Ada Lovelace', orgName: 'Ada Lovelace', kind: 'personal', domain: null, role: 'owner', status: 'active' },
      ])
    }
    const me = await browser.open(`${app.baseUrl}/me`)
    expect(me.status).toBe(200)
    expect(me.json).toMatchObject({ email: 'Ada.Lovelace@Example.test', role: 'owner' })
  })

  test('when a GitHub user has no name, the user and their organisation get the login as their name', async () => {
    account(9, 'nameless@example.test', { name: null, avatar_url: 'javascript:alert(1)' })
    await signIn('github')
    expect(await person(app.db, 'nameless@example.test')).toMatchObject({ name: 'login9', avatarUrl: null })
    expect((await usersOf(app.db, 'nameless@example.test'))[0]?.orgName).toBe('login9')
  })

  test('many concurrent first sign-ins make one user and one organisation', async () => {
    account(10, 'crowd@example.test')
    google.person = { sub: 'crowd', email: 'CROWD@example.test', email_verified: true, name: 'The Crowd' }
    const browsers = Array.from({ length: 10 }, () => new TestBrowser())
    const backs = await Promise.all(browsers.map((browser, index) => toCallback(browser, index % 2 === 0 ? 'github' : 'google')))
    const replies = await Promise.all(browsers.map((browser, index) => browser.open(backs[index] ?? '')))
    expect(replies.map(reply => reply.status)).toEqual(replies.map(() => 302))
    const found = await usersOf(app.db, 'crowd@example.test')
    expect(found.length).toBe(1)
    expect(found[0]).toMatchObject({ kind: 'personal', role: 'owner' })
  })

  test('the same verified address at the other provider is the same person; from then on, the account is recognised by its id', async () => {
    account(11, 'mira@example.test')
    await signIn('github')
    google.person = { sub: 'mira-g', email: 'MIRA@example.test', email_verified: true, name: 'Other Name' }
    expect((await signIn('google')).status).toBe(302)
    expect(await usersOf(app.db, 'mira@example.test')).toHaveLength(1)
    // The account at the provider has a new, unverified address. It is still the same person, and nothing stored about them changes.
    google.person = { sub: 'mira-g', email: 'mira.new@example.test', email_verified: false }
    expect((await signIn('google')).status).toBe(302)
    expect(await person(app.db, 'mira@example.test')).toMatchObject({ name: 'Person 11' })
    expect(await person(app.db, 'mira.new@example.test')).toBeNull()
  })

  test('of the addresses at GitHub, only the verified primary address is used', async () => {
    for (const emails of [
      [],
      [{ email: 'owner@test-org.test', primary: true, verified: false }],
      [{ email: 'owner@test-org.test', primary: false, verified: true }],
    ]) {
      account(12, 'x', { emails })
      const reply = await signIn('github')
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('github has no verified e-mail address')
    }
  })

  test('a person who is already a member gets no personal organisation and keeps their name', async () => {
    account(13, 'OWNER@test-org.test', { name: 'Owner at GitHub' })
    const browser = new TestBrowser()
    expect((await signIn('github', browser)).status).toBe(302)
    expect((await usersOf(app.db, 'owner@test-org.test')).map(row => row.orgName)).toEqual(['Test Org'])
    expect((await browser.open(`${app.baseUrl}/me`)).json.email).toBe('owner@test-org.test')
  })

  test('a new sign-in ends the previous session of the browser, and starts in the organisation that the person used last', async () => {
    const team = await app.otherOrg('Second Team')
    account(14, 'owner@second-team.test')
    const browser = new TestBrowser()
    await signIn('github', browser)
    const old = browser.cookieHeader(`${app.baseUrl}/me`)
    expect((await app.call('GET', '/me', undefined, { cookie: old })).status).toBe(200)
    await app.db.exec(addMembership, app.orgId, team.userId)
    expect((await app.call('POST', '/me/orgs/switch', { org_id: app.orgId }, { cookie: old })).status).toBe(200)
    await signIn('github', browser)
    const fresh = browser.cookieHeader(`${app.baseUrl}/me`)
    expect(fresh).not.toBe(old)
    expect((await app.call('GET', '/me', undefined, { cookie: old })).json.error.code).toBe('no_session')
    expect((await app.gateway.app.sessions.principalOf(fresh)).orgId).toBe(app.orgId)
    // The person is no longer a member there, so the session starts in an organisation where they still are.
    await app.db.exec(endMembership, app.orgId, team.userId)
    await signIn('github', browser)
    expect((await app.gateway.app.sessions.principalOf(browser.cookieHeader(`${app.baseUrl}/me`))).orgId).toBe(team.orgId)
  })
})
