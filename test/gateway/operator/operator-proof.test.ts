/** Which sign-ins make a session of an operator: those that prove an address of OPERATOR_EMAILS. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type GithubServer, startGithub } from '../../harness/github-server.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'
import { admin, signInAt, signInByLink } from './operators.ts'

/** A sign-in of an issuer that cannot be finished has no session. */
const refused = 'refused'

describe('the proof of the address of an operator', () => {
  let google: GoogleServer
  let github: GithubServer
  let app: TestApp
  beforeAll(async () => {
    ;[google, github] = await Promise.all([startGoogle(), startGithub()])
    app = await startApp({ env: { ...google.env, ...github.env, OPERATOR_EMAILS: 'asha@ops.test,listed@ops.test,ravi@ops.test' } })
  })
  afterAll(async () => {
    await app.stop()
    await Promise.all([google.stop(), github.stop()])
  })

  /** What the session of a cookie may do: the status of an endpoint of operators, after GET /me has said the same. */
  async function mayOperate(cookie: string): Promise<boolean | typeof refused> {
    const me = await app.call('GET', '/me', undefined, { cookie })
    if (me.status === 401) return refused
    const { status } = await app.call('GET', '/me/operator/outbox', undefined, { cookie })
    expect([200, 404]).toContain(status)
    expect(me.json.is_operator).toBe(status === 200)
    return status === 200
  }
  const googleAs = (sub: string, email: string | undefined, verified: boolean | string | undefined) => {
    google.person = { sub, ...(email === undefined ? {} : { email }), ...(verified === undefined ? {} : { email_verified: verified }), name: 'Asha' }
    return signInAt(app, 'google')
  }
  const githubAs = (id: number, email: string, verified: boolean) => {
    github.person = { ...github.person, id, emails: [{ email, primary: true, verified }] }
    return signInAt(app, 'github')
  }

  test('an issuer that has verified a listed address makes an operator, in upper or lower case', async () => {
    expect(await mayOperate(await googleAs('g-asha', 'Asha@OPS.test', true))).toBe(true)
    expect(await mayOperate(await googleAs('g-other', 'other@ops.test', true))).toBe(false)
  })

  test('an issuer that has not verified the address makes no session of a new person', async () => {
    for (const verified of [false, 'false', undefined]) expect(await mayOperate(await googleAs('g-new', 'listed@ops.test', verified))).toBe(refused)
    expect(await mayOperate(await githubAs(900, 'listed@ops.test', false))).toBe(refused)
  })

  test('a known account whose address is unverified or another one now signs in, and is no operator in that session', async () => {
    for (const verified of [false, undefined]) expect(await mayOperate(await googleAs('g-asha', 'asha@ops.test', verified))).toBe(false)
    expect(await mayOperate(await googleAs('g-asha', 'asha@elsewhere.test', true))).toBe(false)
    expect(await mayOperate(await googleAs('g-asha', undefined, undefined))).toBe(false)
    // The account of another person who gets a listed address later keeps its own address here.
    expect(await mayOperate(await googleAs('g-other', 'asha@ops.test', true))).toBe(false)
    expect(await mayOperate(await googleAs('g-asha', 'asha@ops.test', true))).toBe(true)
  })

  test('GitHub proves its primary verified address only', async () => {
    expect(await mayOperate(await githubAs(901, 'ravi@ops.test', true))).toBe(true)
    expect(await mayOperate(await githubAs(901, 'ravi@ops.test', false))).toBe(false)
    github.person = {
      ...github.person,
      id: 902,
      emails: [
        { email: 'mira@elsewhere.test', primary: true, verified: true },
        { email: 'ravi@ops.test', primary: false, verified: true },
      ],
    }
    expect(await mayOperate(await signInAt(app, 'github'))).toBe(false)
  })

  test('a one-time link of the operator proves the address that it was made for', async () => {
    await admin(app, 'create', { email: 'listed@ops.test', org: 'Listed' })
    expect(await mayOperate(await signInByLink(app, 'LISTED@ops.test'))).toBe(true)
    expect(await mayOperate(await signInByLink(app, 'owner@test-org.test'))).toBe(false)
  })

  test('an invitation to a listed address gives nothing to the person who makes it, nor to one who reads its link', async () => {
    const owner = await app.signIn()
    const made = await app.call('POST', '/me/members', { email: 'asha@ops.test', role: 'owner' }, { cookie: owner })
    const { link } = (await app.call('POST', `/me/members/pending/${made.json.invitation?.id ?? made.json.id}/link`, {}, { cookie: owner })).json
    const browser = new TestBrowser()
    expect((await browser.open(link)).setCookies.some(line => line.startsWith('br_session='))).toBe(false)
    expect(await mayOperate(owner)).toBe(false)
  })

  test('a session without a proof is of no operator, although it belongs to a listed address', async () => {
    const { userId, orgId } = await admin(app, 'create', { email: 'listed@ops.test', org: 'Second' }).then(made => ({
      userId: made.user_id,
      orgId: made.org_id,
    }))
    // As a process of the previous version makes it.
    expect(await mayOperate(await app.signIn(userId, orgId))).toBe(false)
  })

  test('the session keeps its proof when it moves to another organisation', async () => {
    const cookie = await signInByLink(app, 'listed@ops.test')
    const { orgs } = (await app.call('GET', '/me/orgs', undefined, { cookie })).json
    expect(orgs.length).toBeGreaterThan(1)
    for (const { id } of orgs) {
      expect((await app.call('POST', '/me/orgs/switch', { org_id: id }, { cookie })).status).toBe(200)
      expect(await mayOperate(cookie)).toBe(true)
    }
  })

  test('an operator who ends the session has no rights with its cookie', async () => {
    const cookie = await signInByLink(app, 'listed@ops.test')
    expect((await app.call('POST', '/auth/logout', undefined, { cookie })).status).toBeLessThan(400)
    expect(await mayOperate(cookie)).toBe(refused)
  })
})
