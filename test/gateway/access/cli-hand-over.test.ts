import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { challengeOf, formOf, pressThrough } from '../../harness/cli-login.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { startGithub } from '../../harness/github-server.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'

describe('the hand-over of a key to the command line', () => {
  let google: GoogleServer
  let app: TestApp
  let clock: MovableClock
  beforeAll(async () => {
    google = await startGoogle()
    clock = movableClock()
    app = await startApp({ env: google.env, clock })
  })
  afterAll(async () => {
    await app.stop()
    await google.stop()
  })

  const state = 'st.ate_-42'
  const verifier = 'v'.repeat(43)
  const challenge = challengeOf(verifier)
  const path = `/cli/login?port=43210&state=${state}&code_challenge=${challenge}&code_challenge_method=S256`
  const redeem = (code: string | null, code_verifier = verifier) => app.call('POST', '/cli/token', { code, code_verifier }, { token: null })
  const press = (cookie: string, form: Record<string, string>, headers: Record<string, string> = {}) =>
    app.call('POST', '/cli/login', new URLSearchParams(form).toString(), {
      cookie,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  const form = { port: '43210', state, code_challenge: challenge }
  const codeIn = (location: string | null): string => new URL(location ?? '').searchParams.get('code') ?? ''
  const keysMade = async () => (await app.dump()).match(/"CLI \d{4}/g)?.length ?? 0

  test('SESS-12, HARD-15 the button sends a signed-in person to 127.0.0.1 with a one-time code; the code and its PKCE verifier fetch a key that expires', async () => {
    const member = await app.newMember('member')
    const names = new Set<string>()
    for (let round = 0; round < 2; round++) {
      const shown = await app.call('GET', path, undefined, { cookie: member.cookie })
      expect([shown.status, shown.headers.get('location')]).toEqual([200, null])
      expect(shown.headers.get('content-security-policy')).toContain("form-action 'self' http://127.0.0.1:43210;")
      expect(shown.text).toContain('ends in 90 days')
      const reply = await press(member.cookie, formOf(shown.text))
      expect(reply.status).toBe(302)
      expect(Object.fromEntries(reply.headers)).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
      const to = new URL(reply.headers.get('location') ?? '')
      expect([to.protocol, to.hostname, to.port, to.pathname]).toEqual(['http:', '127.0.0.1', '43210', '/callback'])
      expect([...to.searchParams.keys()].sort()).toEqual(['code', 'state'])
      expect(to.searchParams.get('state')).toBe(state)
      const before = await keysMade()
      const fetched = await redeem(to.searchParams.get('code'))
      expect([fetched.status, fetched.headers.get('cache-control')]).toEqual([201, 'no-store'])
      expect(await keysMade()).toBe(before + 1)
      const days = (Date.parse(fetched.json.expires_at) - clock.nowMs()) / 86_400_000
      expect(days).toBeGreaterThan(89.9)
      expect(days).toBeLessThan(90.1)
      const whoami = (await app.call('GET', '/v1/me/whoami', undefined, { token: fetched.json.key })).json
      expect(whoami).toMatchObject({ org: { id: app.orgId }, user: { id: member.userId }, role: 'member', scope: 'full' })
      expect(whoami.key.name).toMatch(/^CLI \d{4}-\d{2}-\d{2} [A-Za-z0-9_-]{6}$/)
      const listed = (await app.call('GET', '/me/keys', undefined, { cookie: member.cookie })).json.keys
      expect(listed.find((key: { id: number }) => key.id === fetched.json.id)).toMatchObject({
        name: fetched.json.name,
        expires_at: fetched.json.expires_at,
        owner: { uid: member.userId },
      })
      const trail = (await app.call('GET', '/me/audit?act=cliLogin', undefined, { cookie: await app.signIn() })).json
      expect(JSON.stringify(trail)).toContain(`key=${fetched.json.id}`)
      names.add(whoami.key.name)
    }
    expect(names.size).toBe(2)
    expect(app.logLines.join('\n')).not.toContain('br-')
  })

  test('HARD-15 a code works once, only with its verifier and for one minute; a wrong verifier uses the code up, and only a hash of the code is stored', async () => {
    const cookie = await app.signIn()
    const fresh = async () => codeIn((await press(cookie, form)).headers.get('location'))
    const refused = async (reply: ReturnType<typeof redeem>) => {
      const { status, json } = await reply
      expect([status, json.error.code, json.error.message]).toEqual([400, 'bad_request', expect.stringContaining('Run brigade login again')])
    }
    const before = await keysMade()
    const once = await fresh()
    expect(await app.dump()).not.toContain(once)
    const both = await Promise.all([redeem(once), redeem(once)])
    expect(both.map(({ status }) => status).sort()).toEqual([201, 400])
    await refused(redeem(once))
    const guessed = await fresh()
    await refused(redeem(guessed, 'w'.repeat(43)))
    await refused(redeem(guessed))
    await refused(redeem('not-a-code-of-this-gateway'))
    const late = await fresh()
    clock.advance(60_001)
    await refused(redeem(late))
    for (const body of [{}, { code: late }, { code: late, code_verifier: 'short' }, { code: late, code_verifier: verifier, key: 1 }])
      expect((await app.call('POST', '/cli/token', body, { token: null })).status).toBe(400)
    expect(await keysMade()).toBe(before + 1)
  })

  test('a code gives no key after its person has been removed from the organisation', async () => {
    const member = await app.newMember('member')
    const code = codeIn((await press(member.cookie, form)).headers.get('location'))
    const owner = await app.signIn()
    expect((await app.call('DELETE', `/me/members/${member.userId}`, undefined, { cookie: owner })).status).toBe(200)
    const before = await keysMade()
    const reply = await redeem(code)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(await keysMade()).toBe(before)
  })

  test('HARD-01 requests for a key without a credential count against a rate limit, and their body must be small', async () => {
    const large = await redeem('c'.repeat(5000))
    expect([large.status, large.json.error.message]).toEqual([413, expect.stringContaining('4096')])
    const few = await startApp({ env: { ANON_RPM: '3' } })
    try {
      const statuses: number[] = []
      for (let times = 0; times < 4; times++) statuses.push((await few.call('POST', '/cli/token', {}, { token: null })).status)
      expect(statuses).toEqual([400, 400, 400, 429])
    } finally {
      await few.stop()
    }
  })

  test('HARD-15 only the button makes a code: opening the address with any headers, or a page of another site, makes none', async () => {
    const cookie = await app.signIn()
    const codes = async () => (await app.dump()).match(/cli_codes/g)?.length ?? 0
    const before = [await keysMade(), await codes()]
    for (const headers of [
      {},
      ...['none', 'same-origin', 'same-site', 'cross-site', 'odd'].map(site => ({ 'sec-fetch-site': site })),
      { 'sec-fetch-site': 'none', 'sec-fetch-user': '?1', 'sec-fetch-mode': 'navigate' },
      { origin: app.baseUrl },
    ] as Record<string, string>[]) {
      const reply = await app.call('GET', path, undefined, { cookie, headers })
      expect([reply.status, reply.headers.get('location')], JSON.stringify(headers)).toEqual([200, null])
      expect(reply.text).toContain('Give it a key')
    }
    for (const headers of [{ origin: 'https://evil.test' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[])
      expect((await press(cookie, form, headers)).status, JSON.stringify(headers)).toBe(403)
    for (const broken of [{}, { ...form, port: '80' }, { ...form, state: 'x' }, { ...form, code_challenge: 'short' }])
      expect((await press(cookie, broken as Record<string, string>)).status).toBe(400)
    // The request of earlier versions, without a verifier.
    expect((await app.call('GET', `/cli/login?port=43210&state=${state}`, undefined, { cookie })).status).toBe(400)
    const signedOut = await app.call('POST', '/cli/login', new URLSearchParams(form).toString(), {
      token: null,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect([signedOut.status, signedOut.headers.get('location')]).toEqual([302, expect.stringContaining('/auth/google?')])
    expect([await keysMade(), await codes()]).toEqual(before)
  })

  test('SESS-13 a person who is not signed in is sent to sign-in, and afterwards returns to this page', async () => {
    const browser = new TestBrowser()
    const first = await browser.open(app.baseUrl + path)
    expect([first.status, first.setCookies]).toEqual([302, []])
    expect(first.location).toBe(`${app.baseUrl}/auth/google?${new URLSearchParams({ return_to: path })}`)
    const { location } = await pressThrough(browser, app.baseUrl + path)
    expect(new URL(location ?? '').searchParams.get('state')).toBe(state)
    const { key } = (await redeem(codeIn(location))).json
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.user).not.toBeNull()
  })

  test('the sign-in page keeps the address to return to, whether there are no ways to sign in or several', async () => {
    const github = await startGithub()
    const both = await startApp({ env: { ...google.env, ...github.env } })
    const none = await startApp()
    try {
      for (const [each, count] of [
        [both, 2],
        [none, 0],
      ] as const) {
        const browser = new TestBrowser()
        const reply = await browser.open(each.baseUrl + path)
        expect(reply.location).toBe(`${each.baseUrl}/auth?${new URLSearchParams({ return_to: path })}`)
        const page = await browser.open(reply.location ?? '')
        const links = [...page.text.matchAll(/href="(\/auth\/[^"]*)"/g)].map(match => (match[1] ?? '').replaceAll('&amp;', '&'))
        expect(links.length).toBe(count)
        for (const link of links) expect(codeIn((await pressThrough(new TestBrowser(), each.baseUrl + link)).location)).not.toBe('')
      }
    } finally {
      await Promise.all([both.stop(), none.stop()])
      await github.stop()
    }
  })

  test.each([
    ['', '', 'port'],
    ['80', state, 'port'],
    ['1023', state, 'port'],
    ['65536', state, 'port'],
    ['99999', state, 'port'],
    ['-1', state, 'port'],
    ['4321.5', state, 'port'],
    ['0x2000', state, 'port'],
    ['8080@evil.test', state, 'port'],
    ['8080/evil', state, 'port'],
    [' 8080', state, 'port'],
    ['8080', '', 'state'],
    ['8080', 'short', 'state'],
    ['8080', 'a'.repeat(201), 'state'],
    ['8080', 'with space', 'state'],
    ['8080', 'line\r\nbreak', 'state'],
    ['8080', 'a&key=forged', 'state'],
    ['8080', 'ünïcode-state', 'state'],
  ])('SESS-14 port %j with state %j is 400 bad_request, with and without a session', async (port, given, wrong) => {
    const query = new URLSearchParams({ port, state: given, code_challenge: challenge })
    for (const cookie of [undefined, await app.signIn()]) {
      const reply = await app.call('GET', `/cli/login?${query}`, undefined, { token: null, ...(cookie === undefined ? {} : { cookie }) })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain(`"${wrong}"`)
    }
  })

  test('the lowest and highest allowed values of each parameter are accepted', async () => {
    for (const query of [`port=8080&state=a.b_c~d-e`, `port=1024&state=${'a'.repeat(8)}`, `port=65535&state=${'a'.repeat(200)}`])
      expect((await app.call('GET', `/cli/login?${query}&code_challenge=${challenge}`, undefined, { cookie: await app.signIn() })).status).toBe(200)
  })

  test('an API key or an agent token does not count as a session on this page', async () => {
    const agent = await app.newAgent('not-a-person')
    for (const token of [app.key, agent.token]) {
      const reply = await app.call('GET', path, undefined, { token })
      expect(reply.headers.get('location')).toContain('/auth/google?')
    }
  })
})
