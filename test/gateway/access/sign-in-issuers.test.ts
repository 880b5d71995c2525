import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'
import { type OpenidIssuer, startOpenidIssuer } from '../../harness/openid-issuer.ts'
import { fileOf, signInAt } from './company-sign-in.ts'

const svg = `data:image/svg+xml;base64,${Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><rect width="2" height="2"/></svg>').toString('base64')}`
const membersMax = 12

/** Two issuers of different kinds: the mock server puts all claims into id tokens with RS256, the strict one has them at userinfo and signs with ES256. */
let globex: GoogleServer
let acme: OpenidIssuer
/** Makes all addresses itself, and says nothing about their verification. */
let makers: OpenidIssuer
let app: TestApp
/** The cookies of the owners of Acme (the first organisation) and Globex (the second). */
let ownerOfAcme: string
let ownerOfGlobex: string
let globexId: number

beforeAll(async () => {
  globex = await startGoogle()
  acme = await startOpenidIssuer('/realms/acme', 'acme')
  makers = await startOpenidIssuer('', 'makers')
  const acmeEntry = {
    id: 'acme',
    name: 'Acme & Sons',
    issuer: acme.url,
    client_id: acme.clientId,
    client_secret_env: 'ACME_SECRET',
    icon: svg,
    scopes: ['openid', 'email', 'profile', 'groups'],
    claims: { groups: 'acl.groups' },
    domains: { 'acme.test': { org: 1 }, 'acme.example': { org: 1 }, 'partner.test': {} },
  }
  const globexEntry = {
    id: 'globex',
    name: 'Globex',
    issuer: globex.url,
    client_id: 'globex-client',
    client_secret_env: 'GLOBEX_SECRET',
    icon: 'building',
    claims: { groups: 'groups' },
    domains: { 'globex.test': { org: 2 } },
  }
  const makersEntry = {
    ...globexEntry,
    id: 'makers',
    name: 'Makers',
    issuer: makers.url,
    client_id: makers.clientId,
    client_secret_env: 'MAKERS_SECRET',
    email_verified: 'assumed',
  }
  app = await startApp({
    env: {
      SIGN_IN_FILE: fileOf({ issuers: [acmeEntry, globexEntry, makersEntry] }),
      ACME_SECRET_FILE: fileOf(`${acme.clientSecret}\n`),
      GLOBEX_SECRET: 'globex-client-secret',
      MAKERS_SECRET: makers.clientSecret,
      MEMBERS_MAX: String(membersMax),
      ANON_RPM: '100000',
      OPERATOR_EMAILS: 'lee@globex.test',
    },
  })
  ownerOfAcme = await app.signIn()
  const other = await app.otherOrg('Globex')
  globexId = other.orgId
  ownerOfGlobex = await app.signIn(other.userId, other.orgId)
  expect([app.orgId, globexId]).toEqual([1, 2])
})
afterAll(async () => {
  await app.stop()
  await Promise.all([globex.stop(), acme.close(), makers.close()])
})
afterEach(() => {
  acme.tamper = () => undefined
  acme.comeBack = () => undefined
  acme.metadata = document => document
  globex.tamper = null
})

const asOwner = (method: string, path: string, body?: unknown, cookie = ownerOfAcme) => app.call(method, path, body, { cookie })
const atAcme = (sub: string, claims: object = {}) => {
  acme.person = { sub, email: `${sub}@acme.test`, email_verified: true, name: sub, ...claims }
  return signInAt(app, 'acme')
}
const atGlobex = (sub: string, claims: Partial<GoogleServer['person']> = {}) => {
  globex.person = { sub, email: `${sub}@globex.test`, email_verified: true, name: sub, ...claims }
  return signInAt(app, 'globex')
}
const membersOf = async (cookie: string): Promise<Record<string, string>> => {
  const { json } = await asOwner('GET', '/me/members', undefined, cookie)
  return Object.fromEntries(json.members.map(({ email, role }: { email: string; role: string }) => [email, role]))
}
const linesOf = async (act: string): Promise<{ target: string; outcome: string; actor: { kind: string } }[]> =>
  (await asOwner('GET', `/me/audit?act=${act}`)).json.entries
const newWorkspace = async (name: string): Promise<number> => (await asOwner('POST', '/me/workspaces', { name })).json.id
const teamOf = async (id: number): Promise<number[]> =>
  (await asOwner('GET', '/me/workspaces')).json.workspaces.find((each: { id: number }) => each.id === id).member_uids

const expectRefused = (reply: { status: number; json: { error: { code: string; message: string } }; setCookies: readonly string[] }, code = 'bad_request') => {
  expect([reply.status, reply.json?.error.code]).toEqual([400, code])
  expect(reply.setCookies.filter(line => line.startsWith('br_session'))).toEqual([])
  return reply.json.error.message
}

describe('CAPI-13 sign-in at any OpenID Connect issuer', () => {
  test('CAPI-13 the sign-in page shows each issuer with its own name and icon, and the page allows pictures but no script', async () => {
    const { text, headers } = await app.call('GET', '/auth', undefined, { token: null })
    expect(
      [...text.matchAll(/href="([^"]*)"><img src="(data:image[^"]*)" alt="" width="20" height="20"><span>([^<]*)</g)].map(([, ...parts]) => parts),
    ).toEqual([
      ['/auth/acme', svg, 'Continue with Acme &amp; Sons'],
      ['/auth/globex', expect.stringMatching(/^data:image\/svg\+xml;base64,/), 'Continue with Globex'],
      ['/auth/makers', expect.any(String), 'Continue with Makers'],
    ])
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; img-src data:; form-action 'self';/)
    expect((await app.call('GET', '/auth/other', undefined, { token: null })).status).toBe(404)
  })

  test('CAPI-13 people of two different issuers who sign in concurrently join the organisation of their own mail domain, and no other', async () => {
    acme.person = { sub: 'asha', email: 'Asha@Acme.test', email_verified: true, name: 'Asha Rao' }
    globex.person = { sub: 'asha', email: 'asha@globex.test', email_verified: true, name: 'Asha G' }
    const browsers = [new TestBrowser(), new TestBrowser()] as const
    const [one, two] = await Promise.all([signInAt(app, 'acme', browsers[0]), signInAt(app, 'globex', browsers[1])])
    for (const { reply } of [one, two]) expect([reply.status, reply.location], reply.text).toEqual([302, `${app.baseUrl}/me`])
    const [first, second] = [(await one.call('GET', '/me')).json, (await two.call('GET', '/me')).json]
    expect([first.user.email, first.user.name, first.org.id, first.role]).toEqual(['Asha@Acme.test', 'Asha Rao', 1, 'member'])
    expect([second.user.email, second.org.id, second.role]).toEqual(['asha@globex.test', 2, 'member'])
    // The same `sub` at two issuers is two people, and nobody gets an organisation of their own beside the company's.
    expect(first.user.id).not.toBe(second.user.id)
    expect((await one.call('GET', '/me/orgs')).json.orgs.map((org: { id: number }) => org.id)).toEqual([1])
    expect(Object.keys(await membersOf(ownerOfAcme))).not.toContain('asha@globex.test')
    expect(await linesOf('joinBySignIn')).toEqual([
      expect.objectContaining({ target: `user=${first.user.id} provider=acme role=member`, outcome: 'ok', actor: expect.objectContaining({ kind: 'system' }) }),
    ])
    // The second sign-in finds the same person, and joins nobody.
    expect((await (await atAcme('asha')).call('GET', '/me')).json.user.id).toBe(first.user.id)
    expect((await linesOf('joinBySignIn')).length).toBe(1)
  })

  test('CAPI-13 an unverified address, and an address of a domain for which the issuer does not vouch, sign nobody in and join nothing', async () => {
    for (const email_verified of [false, 'false', undefined, null]) {
      const { reply } = await atAcme('unverified', { email_verified })
      expect(expectRefused(reply)).toContain('Acme & Sons states no verified e-mail address')
    }
    expectRefused((await atAcme('nomail', { email: undefined })).reply)
    // The issuer of Acme cannot name the owner of Globex, whatever it says.
    const { reply } = await atAcme('mallory', { email: 'owner@globex.test' })
    expect(expectRefused(reply)).toContain('does not vouch for addresses of globex.test')
    for (const email of ['a@sub.acme.test', 'a@acme.test.evil.test', 'a@xacme.test']) expectRefused((await atAcme('mallory', { email })).reply)
    const dump = await app.dump()
    for (const text of ['unverified@', 'mallory', 'acme.test.evil']) expect(dump).not.toContain(text)
    // A domain for which the issuer vouches, but that no organisation has, joins nothing.
    const partner = await atAcme('pat', { email: 'pat@partner.test' })
    expect((await partner.call('GET', '/me')).json.org.kind).toBe('personal')
  })

  test('CAPI-13 the setting email_verified decides about a claim that is not there, and never about one that denies the address', async () => {
    const at = async (email_verified?: unknown) => {
      makers.person = { sub: 'lee', email: 'lee@globex.test', ...(email_verified === undefined ? {} : { email_verified }) }
      return signInAt(app, 'makers')
    }
    for (const denied of [false, 'false', null, 0]) expectRefused((await at(denied)).reply)
    // An address that nobody has verified proves no operator.
    expect((await (await at()).call('GET', '/me')).json).toMatchObject({ role: 'member', org: { id: 2 }, is_operator: false })
    expect((await (await at(true)).call('GET', '/me')).json.is_operator).toBe(true)
    expectRefused((await atGlobex('lee', { email_verified: undefined })).reply)
  })

  test('CAPI-13 an owner chooses the role of who joins; a removed person, and a person beyond MEMBERS_MAX, do not join', async () => {
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'admin' })).json).toMatchObject({ ok: true, default_role: 'admin', groups: [] })
    const bela = await atAcme('bela', { email: 'bela@acme.example' })
    const { user } = (await bela.call('GET', '/me')).json
    expect((await membersOf(ownerOfAcme))['bela@acme.example']).toBe('admin')
    expect((await membersOf(ownerOfAcme))['Asha@Acme.test']).toBe('member')
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member' })).status).toBe(200)

    expect((await asOwner('DELETE', `/me/members/${user.id}`)).status).toBe(200)
    const back = await atAcme('bela', { email: 'bela@acme.example' })
    expect((await back.call('GET', '/me')).json.org.kind).toBe('personal')
    expect(Object.keys(await membersOf(ownerOfAcme))).not.toContain('bela@acme.example')

    // An open invitation is taken up, so its role counts. An invitation as owner waits for the person.
    expect((await asOwner('POST', '/me/members', { email: 'ira@acme.test', role: 'admin' })).status).toBe(201)
    expect((await (await atAcme('ira')).call('GET', '/me')).json).toMatchObject({ role: 'admin', org: { id: 1 } })
    const { id } = (await asOwner('POST', '/me/members', { email: 'oda@acme.test', role: 'owner' })).json
    expect((await (await atAcme('oda')).call('GET', '/me')).json).toMatchObject({ role: 'owner', org: { kind: 'personal' } })
    expect((await asOwner('DELETE', `/me/members/pending/${id}`)).status).toBe(200)

    const { members } = (await asOwner('GET', '/me/members')).json
    for (let count = members.length; count < membersMax; count++)
      expect((await asOwner('POST', '/me/members', { email: `room-${count}@else.test`, role: 'member' })).status).toBe(201)
    const full = await atAcme('late')
    expect(expectRefused(full.reply, 'member_cap')).toContain(`${membersMax} members`)
    // Who is a member elsewhere still gets in there.
    expect((await (await atAcme('pat', { email: 'pat@acme.test' })).call('GET', '/me')).json.org.kind).toBe('personal')
    expect((await linesOf('joinBySignIn')).filter(({ outcome }) => outcome === 'member_cap').length).toBe(2)
    for (const { id: open } of (await asOwner('GET', '/me/members')).json.pending) await asOwner('DELETE', `/me/members/pending/${open}`)
  })
})

describe('CAPI-13 groups give roles and workspaces', () => {
  test('CAPI-13 groups give exactly their roles and workspaces at each sign-in, and a lost group takes them away, with a line for each', async () => {
    const [red, blue, own] = [await newWorkspace('Red'), await newWorkspace('Blue'), await newWorkspace('By hand')]
    const rules = [
      { group: 'platform-admins', role: 'admin', workspace_ids: [red] },
      { group: 'Blue team', role: null, workspace_ids: [blue, own] },
    ]
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member', groups: rules })).json.groups).toEqual(rules)
    const first = await atAcme('gus', { acl: { groups: ['platform-admins', 'Blue team', 'other'] } })
    const { id } = (await first.call('GET', '/me')).json.user
    expect((await first.call('GET', '/me')).json.role).toBe('admin')
    expect([await teamOf(red), await teamOf(blue)]).toEqual([[id], [id]])

    // Names are compared exactly. The session that is open meanwhile loses its rights too.
    const second = await atAcme('gus', { acl: { groups: ['Platform-Admins', 'blue team', 'platform-admin'] } })
    for (const { call } of [first, second]) expect((await call('GET', '/me')).json.role).toBe('member')
    expect((await first.call('GET', '/me/sign-in-rules')).status).toBe(403)
    expect([await teamOf(red), await teamOf(blue)]).toEqual([[], []])
    const roles = (await linesOf('changeRoleBySignIn')).map(({ target }) => target)
    expect(roles).toEqual([`user=${id} provider=acme role=member`])
    expect((await linesOf('changeWorkspacesBySignIn')).map(({ target }) => target)).toEqual([
      `user=${id} provider=acme added=none removed=${[red, blue, own].join(',')}`,
      `user=${id} provider=acme added=${[red, blue, own].join(',')} removed=none`,
    ])

    // What a person gave by hand stays. One group may come as a text.
    expect((await asOwner('PATCH', `/me/workspaces/${own}`, { member_uids: [id] })).status).toBe(200)
    await atAcme('gus', { acl: { groups: 'Blue team' } })
    expect([await teamOf(blue), await teamOf(own)]).toEqual([[id], [id]])
    await atAcme('gus')
    expect([await teamOf(blue), await teamOf(own)]).toEqual([[], [id]])

    // Rights that groups gave also end when the address of the account is no longer one of the organisation.
    await atAcme('gus', { acl: { groups: ['platform-admins'] } })
    expect([(await membersOf(ownerOfAcme))['gus@acme.test'], await teamOf(red)]).toEqual(['admin', [id]])
    await atAcme('gus', { email: 'gus@partner.test', acl: { groups: ['platform-admins'] } })
    expect([(await membersOf(ownerOfAcme))['gus@acme.test'], await teamOf(red)]).toEqual(['member', []])
  })

  test('CAPI-13 no group makes an owner, and groups take nothing from an owner', async () => {
    const refused = await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member', groups: [{ group: 'g', role: 'owner' }] })
    expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_request'])
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'owner' })).status).toBe(400)
    const person = await atAcme('hema')
    const { id } = (await person.call('GET', '/me')).json.user
    expect((await asOwner('PATCH', `/me/members/${id}`, { role: 'owner' })).status).toBe(200)
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member', groups: [{ group: 'staff', role: 'member' }] })).status).toBe(200)
    expect((await (await atAcme('hema', { acl: { groups: ['staff'] } })).call('GET', '/me')).json.role).toBe('owner')
    // A rule decides the role of everybody else, also of an admin by hand.
    expect((await asOwner('PATCH', `/me/members/${id}`, { role: 'admin' })).status).toBe(200)
    expect((await (await atAcme('hema')).call('GET', '/me')).json.role).toBe('admin')
    expect((await (await atAcme('hema', { acl: { groups: ['staff'] } })).call('GET', '/me')).json.role).toBe('member')
  })

  test('CAPI-13 a claim of groups that cannot be read signs nobody in', async () => {
    const many = Array.from({ length: 2_001 }, (_, index) => `g${index}`)
    for (const groups of [many, [1], { a: 1 }, ['x'.repeat(257)], 7])
      expect(expectRefused((await atGlobex('ines', { ...({ groups } as object) })).reply)).toContain('"groups"')
    const leftOut = await atGlobex('ines', { ...({ _claim_names: { groups: 'src1' } } as object) })
    expect(expectRefused(leftOut.reply)).toContain('nobody was signed in')
    expect(app.logLines.map(line => JSON.parse(line))).toContainEqual(expect.objectContaining({ provider: 'globex', code: 'refused_claims' }))
  })

  test('CAPI-13 only an owner changes the rules, for issuers and workspaces of the own organisation', async () => {
    const { json } = await asOwner('GET', '/me/sign-in-rules')
    expect(json.issuers.map(({ id, name, icon, domains, states_groups }: Record<string, unknown>) => [id, name, icon, domains, states_groups])).toEqual([
      ['acme', 'Acme & Sons', svg, ['acme.test', 'acme.example'], true],
    ])
    const admin = (await app.newMember('admin')).cookie
    expect((await asOwner('GET', '/me/sign-in-rules', undefined, admin)).status).toBe(200)
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'admin' }, admin)).status).toBe(403)
    expect((await asOwner('PUT', '/me/sign-in-rules/globex', { default_role: 'admin' })).status).toBe(404)
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'admin' }, ownerOfGlobex)).status).toBe(404)
    const foreign = (await asOwner('POST', '/me/workspaces', { name: 'Secret' }, ownerOfGlobex)).json.id
    const groups = [{ group: 'g', workspace_ids: [foreign] }]
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member', groups })).status).toBe(404)
    const twice = [{ group: 'g' }, { group: 'g' }]
    expect((await asOwner('PUT', '/me/sign-in-rules/acme', { default_role: 'member', groups: twice })).json.error.message).toContain('once')
  })
})

describe('CAPI-13 what the gateway checks of an issuer', () => {
  test('CAPI-13 a wrong or missing iss, a wrong nonce, audience, issuer or time makes no session; a clock may differ by a minute', async () => {
    for (const change of [(query: URLSearchParams) => query.set('iss', 'http://evil.test'), (query: URLSearchParams) => query.delete('iss')]) {
      acme.comeBack = change
      expectRefused((await atAcme('kim')).reply)
    }
    acme.comeBack = () => undefined
    const nowSeconds = Math.floor(Date.now() / 1000)
    for (const change of [
      { nonce: 'other' },
      { nonce: undefined },
      { aud: 'other' },
      { iss: 'http://evil.test' },
      { sub: 'somebody-else' },
      { exp: nowSeconds - 70 },
      { iat: nowSeconds - 300, nbf: nowSeconds + 90, exp: nowSeconds + 200 },
    ]) {
      acme.tamper = claims => Object.assign(claims, change)
      expectRefused((await atAcme('kim')).reply)
    }
    acme.tamper = claims => Object.assign(claims, { exp: nowSeconds - 20, nbf: nowSeconds + 20 })
    expect((await atAcme('kim')).reply.status).toBe(302)
  })

  test('CAPI-13 a new signing key works at the next sign-in, and the withdrawn one does not', async () => {
    expect((await atAcme('kim')).reply.status).toBe(302)
    await acme.rotate()
    expect((await atAcme('kim')).reply.status).toBe(302)
    await globex.forgeSignatures()
    expectRefused((await atGlobex('asha')).reply)
  })

  test('CAPI-13 a sign-in that began at one issuer cannot end at another', async () => {
    acme.person = { sub: 'kim', email: 'kim@acme.test', email_verified: true }
    const browser = new TestBrowser()
    const back = new URL((await browser.open((await browser.open(`${app.baseUrl}/auth/acme`)).location ?? '')).location ?? '')
    expectRefused(await browser.open(`${app.baseUrl}/auth/globex/callback${back.search}`))
    expectRefused(await browser.open(back.href))
  })

  test('CAPI-13 an issuer that is away says so on a page without internals, others work meanwhile, and it works when it is back', async () => {
    await acme.close()
    const browser = new TestBrowser()
    // The metadata are known, so the browser is sent there. The first exchange fails.
    const page = await new TestBrowser().open(`${app.baseUrl}/auth/acme`, { headers: { accept: 'text/html' } })
    expect(page.status).toBe(302)
    const state = new URL((await browser.open(`${app.baseUrl}/auth/acme`)).location ?? '').searchParams.get('state')
    const query = new URLSearchParams({ code: 'x', state: state ?? '', iss: acme.url })
    const failed = await browser.open(`${app.baseUrl}/auth/acme/callback?${query}`, { headers: { accept: 'text/html' } })
    expect(failed.status).toBe(400)
    expect(failed.text).toContain('Acme &amp; Sons did not answer as it should')
    expect(failed.text).not.toMatch(/\bat .*\.ts|ECONN|127\.0\.0\.1/)
    expect((await app.call('GET', '/auth/globex', undefined, { token: null })).status).toBe(302)
    await acme.listen()
    expect((await atAcme('kim')).reply.status).toBe(302)
  })

  test('CAPI-13 no secret of an issuer is in the log, in a reply or in the database', async () => {
    const text = `${app.logLines.join('\n')}${await app.dump()}${(await asOwner('GET', '/me/sign-in-rules')).text}`
    for (const secret of [acme.clientSecret, 'globex-client-secret']) expect(text).not.toContain(secret)
  })
})
