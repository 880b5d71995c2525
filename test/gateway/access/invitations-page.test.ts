import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'

const mailedLink = statement<[to: string], { link: string }>(
  'test.mailed_link',
  `select data->>'link' as "link" from emails where to_address = $1::text order by id desc limit 1`,
)
const events = statement<[orgId: number], { type: string; keyId: number }>(
  'test.key_events',
  `select type, (data->>'key_id')::int as "keyId" from webhook_events where org_id = $1::int order by seq`,
)

describe('the page to which the link of an invitation leads', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  /** Invites a person who has their own organisation and their own browser. */
  async function invited(name: string, role = 'member') {
    const { orgId, userId } = await app.otherOrg(name)
    const email = `owner@${name.toLowerCase()}.test`
    const { json } = await app.call('POST', '/me/members', { email, role }, { cookie })
    const link = (await app.db.one(mailedLink, email)).link
    const browser = new TestBrowser()
    const signIn = async (): Promise<void> => {
      const { url } = await app.gateway.app.makeSignInLink(email)
      await browser.open(`${app.baseUrl}/auth/link`, { form: { token: new URL(url).searchParams.get('token') ?? '' } })
    }
    const decide = (decision: string, headers: Record<string, string> = { origin: app.baseUrl }) =>
      browser.open(`${app.baseUrl}/invitations`, { form: { id: String(json.id), decision }, headers })
    return { orgId, userId, email, id: json.id as number, link, browser, signIn, decide }
  }

  test('the link in the mail leads through sign-in to the page; joining makes the person a member and moves their session to that organisation', async () => {
    const { link, browser, signIn, decide, email } = await invited('Joiner', 'admin')
    const first = await browser.open(link)
    expect([first.status, first.location]).toEqual([302, `${app.baseUrl}/auth?return_to=%2Finvitations`])
    await signIn()
    const page = await browser.open(link)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.text).toContain(email)
    expect(page.text).toContain('<strong>Test Org</strong> invites you as admin')
    const joined = await decide('accept')
    expect([joined.status, joined.location]).toEqual([303, `${app.baseUrl}/me`])
    expect((await browser.open(`${app.baseUrl}/me`)).json).toMatchObject({ email, role: 'admin', org: { id: app.orgId } })
    expect((await browser.open(link)).text).toContain('no open invitation')
    expect((await decide('accept')).json.error.code).toBe('not_found')
  })

  test('declining changes no membership, and both joining and declining are in the audit trail', async () => {
    const { browser, signIn, decide, orgId, id } = await invited('Decliner')
    await signIn()
    const declined = await decide('decline')
    expect([declined.status, declined.location]).toEqual([303, `${app.baseUrl}/invitations`])
    expect((await browser.open(`${app.baseUrl}/me`)).json.org.id).toBe(orgId)
    const audit = await browser.open(`${app.baseUrl}/me/audit?act=declineInvitation`)
    expect(audit.json.entries).toMatchObject([{ act: 'declineInvitation', target: `id=${id}`, outcome: 'ok' }])
  })

  test('the inviting organisation reads in its own audit trail who joined and who declined, whether over the page or the API', async () => {
    const trail = async (act: string, userId: number): Promise<unknown> =>
      (await app.call('GET', `/me/audit?act=${act}&actor=user:${userId}`, undefined, { cookie })).json.entries
    const joiner = await invited('Trailjoin')
    await joiner.signIn()
    await joiner.decide('accept')
    expect(await trail('acceptInvitation', joiner.userId)).toMatchObject([{ target: `id=${joiner.id}`, outcome: 'ok', actor: { name: joiner.email } }])
    const decliner = await invited('Traildecline')
    await decliner.signIn()
    expect((await decliner.browser.open(`${app.baseUrl}/me/invitations/${decliner.id}/decline`, { method: 'POST' })).status).toBe(200)
    expect(await trail('declineInvitation', decliner.userId)).toMatchObject([{ target: `id=${decliner.id}`, outcome: 'ok' }])
  })

  test('a form from another site, an invitation of another person and an incomplete form decide nothing', async () => {
    const one = await invited('Careful')
    const other = await invited('Foreign')
    await one.signIn()
    expect((await one.decide('accept', { origin: 'https://elsewhere.test' })).json.error.code).toBe('forbidden')
    const foreign = await one.browser.open(`${app.baseUrl}/invitations`, { form: { id: String(other.id), decision: 'accept' } })
    expect(foreign.json.error.code).toBe('not_found')
    for (const form of [{ id: String(one.id) }, { id: 'x', decision: 'accept' }, { id: String(one.id), decision: 'perhaps' }])
      expect((await one.browser.open(`${app.baseUrl}/invitations`, { form })).json.error.code).toBe('bad_request')
    const stranger = await new TestBrowser().open(`${app.baseUrl}/invitations`, { form: { id: String(one.id), decision: 'accept' } })
    expect(stranger.location).toBe(`${app.baseUrl}/auth?return_to=%2Finvitations`)
    expect((await app.call('GET', '/me/members', undefined, { cookie })).json.pending.map((each: { id: number }) => each.id)).toEqual(
      expect.arrayContaining([one.id, other.id]),
    )
  })

  test('when a membership ends, webhooks report its revoked keys like every other revoked key', async () => {
    const member = await app.newMember('member')
    const made = await app.call('POST', '/me/keys', { name: 'goes with its person' }, { cookie: member.cookie })
    await app.call('DELETE', `/me/members/${member.userId}`, undefined, { cookie })
    expect(await app.db.many(events, app.orgId)).toContainEqual({ type: 'key.revoked', keyId: made.json.id })
  })
})
