import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { startGithub } from '../../harness/github-server.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'

describe('the hand-over of a key to the command line', () => {
  let google: GoogleServer
  let app: TestApp
  beforeAll(async () => {
    google = await startGoogle()
    app = await startApp({ env: google.env })
  })
  afterAll(async () => {
    await app.stop()
    await google.stop()
  })

  const state = 'st.ate_-42'
  const path = `/cli/login?port=43210&state=${state}`
  const isLoopback = (url: string): boolean => url.startsWith('http://127.0.0.1:43210/')

  test('SESS-12 a signed-in person is sent to 127.0.0.1 on that port with a key of theirs and the same state', async () => {
    const member = await app.newMember('member')
    const names = new Set<string>()
    for (let round = 0; round < 2; round++) {
      const reply = await app.call('GET', path, undefined, { cookie: member.cookie })
      expect(reply.status).toBe(302)
      expect(Object.fromEntries(reply.headers)).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
      const to = new URL(reply.headers.get('location') ?? '')
      expect([to.protocol, to.hostname, to.port, to.pathname]).toEqual(['http:', '127.0.0.1', '43210', '/callback'])
      expect([...to.searchParams.keys()].sort()).toEqual(['key', 'state'])
      expect(to.searchParams.get('state')).toBe(state)
      const whoami = (await app.call('GET', '/v1/me/whoami', undefined, { token: to.searchParams.get('key') })).json
      expect(whoami).toMatchObject({ org: { id: app.orgId }, user: { id: member.userId }, role: 'member', scope: 'full' })
      expect(whoami.key.name).toMatch(/^CLI \d{4}-\d{2}-\d{2} [A-Za-z0-9_-]{6}$/)
      names.add(whoami.key.name)
    }
    expect(names.size).toBe(2)
    expect(app.logLines.join('\n')).not.toContain('br-')
  })

  test('SESS-13 somebody who is not signed in is sent to sign in and comes back into the flow', async () => {
    const browser = new TestBrowser()
    const first = await browser.open(app.baseUrl + path)
    expect([first.status, first.setCookies]).toEqual([302, []])
    expect(first.location).toBe(`${app.baseUrl}/auth/google?${new URLSearchParams({ return_to: path })}`)
    const end = await browser.follow(app.baseUrl + path, isLoopback)
    expect(new URL(end.location ?? '').searchParams.get('state')).toBe(state)
    const key = new URL(end.location ?? '').searchParams.get('key')
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json.user).not.toBeNull()
  })

  test('with more than one way to sign in, or none, the page with the ways keeps the way back', async () => {
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
        for (const link of links) {
          const end = await new TestBrowser().follow(each.baseUrl + link, isLoopback)
          expect(new URL(end.location ?? '').searchParams.get('key')).toMatch(/^br-/)
        }
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
  ])('SESS-14 port %j with state %j is 400 bad_request, signed in or not', async (port, given, wrong) => {
    const query = new URLSearchParams({ port, state: given })
    for (const cookie of [undefined, await app.signIn()]) {
      const reply = await app.call('GET', `/cli/login?${query}`, undefined, { token: null, ...(cookie === undefined ? {} : { cookie }) })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain(`"${wrong}"`)
    }
  })

  test('the edges of what is allowed pass', async () => {
    for (const query of [`port=8080&state=a.b_c~d-e`, `port=1024&state=${'a'.repeat(8)}`, `port=65535&state=${'a'.repeat(200)}`])
      expect((await app.call('GET', `/cli/login?${query}`, undefined, { cookie: await app.signIn() })).status).toBe(302)
  })

  test('an API key or an agent token is no session here', async () => {
    const agent = await app.newAgent('not-a-person')
    for (const token of [app.key, agent.token]) {
      const reply = await app.call('GET', path, undefined, { token })
      expect(reply.headers.get('location')).toContain('/auth/google?')
    }
  })

  test('the page of another site cannot have a key made: the person has to press a button of ours', async () => {
    const cookie = await app.signIn()
    const keys = async () => (await app.dump()).match(/"CLI \d{4}/g)?.length ?? 0
    const before = await keys()
    const reply = await app.call('GET', path, undefined, { cookie, headers: { 'sec-fetch-site': 'cross-site' } })
    expect([reply.status, reply.headers.get('location')]).toEqual([200, null])
    expect(await keys()).toBe(before)
    const link = /href="([^"]*)"/.exec(reply.text)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect((await app.call('GET', link, undefined, { cookie, headers: { 'sec-fetch-site': 'same-origin' } })).headers.get('location')).toContain('key=br-')
  })
})
