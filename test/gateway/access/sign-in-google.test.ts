import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { TestBrowser } from '../../harness/browser.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'
import { type GoogleServer, startGoogle } from '../../harness/google-server.ts'

describe('TEST-02 (identity) sign-in with Google', () => {
  let google: GoogleServer
  let clock: MovableClock
  let app: TestApp
  beforeAll(async () => {
    google = await startGoogle()
    clock = movableClock()
    app = await startApp({ env: google.env, clock })
  })
  afterAll(async () => {
    await app.stop()
    await google.stop()
  })
  afterEach(() => {
    google.tamper = null
    google.refusal = null
    google.error = null
  })

  const start = (browser: TestBrowser, query = '') => browser.open(`${app.baseUrl}/auth/google${query}`)
  /** Signs in, from /auth/google to the reply of the callback. */
  async function signIn(browser: TestBrowser, query = '') {
    const atIssuer = await browser.open((await start(browser, query)).location ?? '')
    return browser.open(atIssuer.location ?? '')
  }
  const isSignedIn = async (browser: TestBrowser): Promise<boolean> => (await browser.open(`${app.baseUrl}/me/memory-store`)).status === 200

  test('SESS-01 the browser is sent to the identity provider with a state, a nonce and a PKCE challenge that are new every time', async () => {
    const replies = [await start(new TestBrowser()), await start(new TestBrowser())]
    const urls = replies.map(reply => new URL(reply.location ?? ''))
    for (const [index, reply] of replies.entries()) {
      expect(reply.status).toBe(302)
      expect(reply.headers.get('cache-control')).toBe('no-store')
      const url = urls[index] as URL
      expect(url.origin).toBe(google.url)
      expect(Object.fromEntries(url.searchParams)).toMatchObject({
        client_id: 'google-client',
        response_type: 'code',
        redirect_uri: `${app.baseUrl}/auth/google/callback`,
        code_challenge_method: 'S256',
      })
      expect(url.searchParams.get('scope')?.split(' ').sort()).toEqual(['email', 'openid', 'profile'])
      for (const name of ['state', 'nonce', 'code_challenge']) expect(url.searchParams.get(name)).toMatch(/^[A-Za-z0-9_-]{43}$/)
      expect(reply.setCookies).toEqual([expect.stringMatching(/^br_sign_in=[A-Za-z0-9_-]{43}; Max-Age=600; Path=\/auth; HttpOnly; SameSite=Lax$/)])
    }
    for (const name of ['state', 'nonce', 'code_challenge']) expect(urls[0]?.searchParams.get(name)).not.toBe(urls[1]?.searchParams.get(name))
  })

  test('SESS-04 the callback sets br_session with HttpOnly and SameSite=Lax, and redirects to /me', async () => {
    const browser = new TestBrowser()
    const reply = await signIn(browser)
    expect(reply.status).toBe(302)
    expect(reply.location).toBe(`${app.baseUrl}/me`)
    expect(reply.headers.get('referrer-policy')).toBe('no-referrer')
    const session = reply.setCookies.find(line => line.startsWith('br_session='))
    expect(session).toMatch(/^br_session=[^;]{60,}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
    expect(await isSignedIn(browser)).toBe(true)
  })

  test('the database contains neither the state, the verifier nor the cookie', async () => {
    const browser = new TestBrowser()
    const first = await start(browser)
    const state = new URL(first.location ?? '').searchParams.get('state') ?? ''
    const cookie = browser.cookieHeader(`${app.baseUrl}/auth/google`).split('=')[1] ?? ''
    const dump = await app.dump()
    expect(dump).toMatch(/,google,v1\./)
    for (const secret of [state, cookie]) {
      expect(secret.length).toBe(43)
      expect(dump).not.toContain(secret)
    }
    expect(dump).not.toContain('"verifier"')
  })

  test('after sign-in the browser goes to return_to, if it is a path of this gateway', async () => {
    const reply = await signIn(new TestBrowser(), `?return_to=${encodeURIComponent('/me/keys?limit=1')}`)
    expect(reply.location).toBe(`${app.baseUrl}/me/keys?limit=1`)
  })

  test.each([
    'https://evil.test/',
    '//evil.test/',
    '/\\evil.test',
    '\\\\evil.test',
    'javascript:alert(1)',
    '/\t/evil.test',
    'me',
    '',
    '/a b',
    `/${'a'.repeat(3000)}`,
  ])('the return_to value %j is refused', async text => {
    const reply = await start(new TestBrowser(), `?return_to=${encodeURIComponent(text)}`)
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain('return_to')
  })

  describe('SESS-05 a callback without a valid state is 400 bad_request and makes no session', () => {
    const expectRefused = (reply: { status: number; json: { error: { code: string } }; setCookies: readonly string[] }) => {
      expect([reply.status, reply.json?.error.code]).toEqual([400, 'bad_request'])
      expect(reply.setCookies.filter(line => line.startsWith('br_session'))).toEqual([])
    }

    test('no state, an invented state, or two states', async () => {
      const browser = new TestBrowser()
      await start(browser)
      for (const query of ['', '?code=abc', '?code=abc&state=', `?code=abc&state=${'x'.repeat(43)}`, '?code=abc&state=a&state=b'])
        expectRefused(await browser.open(`${app.baseUrl}/auth/google/callback${query}`))
    })

    test('a state that was already used, also when two callbacks use it concurrently', async () => {
      const browser = new TestBrowser()
      const back = (await browser.open((await start(browser)).location ?? '')).location ?? ''
      const cookie = browser.cookieHeader(back)
      const replies = await Promise.all([1, 2, 3, 4].map(() => new TestBrowser().open(back, { headers: { cookie } })))
      expect(replies.filter(reply => reply.status === 302).length).toBe(1)
      for (const reply of replies.filter(each => each.status !== 302)) expectRefused(reply)
      expectRefused(await browser.open(back))
    })

    test('a state of another browser', async () => {
      const [mine, theirs] = [new TestBrowser(), new TestBrowser()]
      await start(theirs)
      const back = (await mine.open((await start(mine)).location ?? '')).location ?? ''
      expectRefused(await theirs.open(back))
      expectRefused(await new TestBrowser().open((await mine.open((await start(mine)).location ?? '')).location ?? ''))
    })

    test('a state that has expired', async () => {
      const browser = new TestBrowser()
      const back = (await browser.open((await start(browser)).location ?? '')).location ?? ''
      clock.advance(600_001)
      expectRefused(await browser.open(back))
    })

    test('a state without a code', async () => {
      const browser = new TestBrowser()
      const state = new URL((await start(browser)).location ?? '').searchParams.get('state')
      expectRefused(await browser.open(`${app.baseUrl}/auth/google/callback?state=${state}`))
    })

    test('a code that the issuer does not know', async () => {
      const browser = new TestBrowser()
      const state = new URL((await start(browser)).location ?? '').searchParams.get('state')
      google.refusal = { status: 400, body: { error: 'invalid_grant' } }
      expectRefused(await browser.open(`${app.baseUrl}/auth/google/callback?state=${state}&code=made-up`))
    })
  })

  test('a browser that uses another name of this computer is first redirected to the configured name, and then the sign-in works', async () => {
    const browser = new TestBrowser()
    const other = app.baseUrl.replace('127.0.0.1', 'localhost')
    const first = await browser.open(`${other}/auth/google?return_to=%2Fme%2Fkeys`)
    expect([first.status, first.location, first.setCookies]).toEqual([302, `${app.baseUrl}/auth/google?return_to=%2Fme%2Fkeys`, []])
    const end = await browser.follow(first.location ?? '', url => url.endsWith('/me/keys'))
    expect(end.location).toBe(`${app.baseUrl}/me/keys`)
    expect(await isSignedIn(browser)).toBe(true)
    for (const host of ['evil.test', 'localhost:1', 'a b', '[::1']) {
      const reply = await new TestBrowser().open(`${app.baseUrl}/auth/google`, { headers: { host } })
      expect(reply.location?.startsWith(google.url)).toBe(true)
    }
  })

  test('two tabs of one browser can sign in concurrently', async () => {
    const browser = new TestBrowser()
    const [one, two] = [await start(browser), await start(browser)]
    expect((await browser.open((await browser.open(one.location ?? '')).location ?? '')).status).toBe(302)
    expect((await browser.open((await browser.open(two.location ?? '')).location ?? '')).status).toBe(302)
  })

  test('a person who declines at the provider gets an error that says so', async () => {
    google.error = 'access_denied'
    const reply = await signIn(new TestBrowser())
    expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain('declined')
    google.error = 'temporarily_unavailable'
    expect((await signIn(new TestBrowser())).json.error.message).toContain('temporarily_unavailable')
  })

  test('an id token with the wrong nonce, audience, issuer or age makes no session', async () => {
    const nowSeconds = Math.floor(Date.now() / 1000)
    for (const change of [
      { nonce: 'other' },
      { aud: 'other' },
      { iss: 'http://evil.test' },
      { exp: nowSeconds - 3600, iat: nowSeconds - 7200 },
      { nonce: undefined },
    ]) {
      google.tamper = claims => Object.assign(claims, change)
      const reply = await signIn(new TestBrowser())
      expect([reply.status, reply.json?.error.code], JSON.stringify(change)).toEqual([400, 'bad_request'])
      expect(reply.setCookies.filter(line => line.startsWith('br_session'))).toEqual([])
    }
  })

  test('an address that the provider has not verified is refused, and the message says what to do', async () => {
    for (const email_verified of [false, undefined, 'false']) {
      google.person = { sub: 'g-unverified', email: 'unverified@example.test', ...(email_verified === undefined ? {} : { email_verified }) }
      const reply = await signIn(new TestBrowser())
      expect([reply.status, reply.json.error.code]).toEqual([400, 'bad_request'])
      expect(reply.json.error.message).toContain('verified e-mail address')
    }
    expect(await app.dump()).not.toContain('unverified@example.test')
  })

  test('an address with a letter that some databases convert to another letter gives no access to the account of the other address', async () => {
    google.person = { sub: 'g-kate', email: 'kate@example.test', email_verified: true, name: 'Kate' }
    expect((await signIn(new TestBrowser())).status).toBe(302)
    // The Kelvin sign becomes a k in lower case.
    google.person = { sub: 'g-kelvin', email: '\u212aate@example.test', email_verified: true, name: 'Mallory' }
    const reply = await signIn(new TestBrowser())
    expect([reply.status, reply.json?.error.code]).toEqual([400, 'bad_request'])
    expect(reply.json.error.message).toContain('another address')
    expect(reply.setCookies.filter(line => line.startsWith('br_session'))).toEqual([])
    expect(await app.dump()).not.toContain('Mallory')
  })

  test('a wrong client secret gives an error for the operator, and the log names the provider and the code', async () => {
    google.refusal = { status: 401, body: { error: 'invalid_client' } }
    const reply = await signIn(new TestBrowser())
    expect([reply.status, reply.json.error.code]).toEqual([400, 'unavailable'])
    expect(reply.json.error.message).toContain('operator')
    expect(app.logLines.map(line => JSON.parse(line))).toContainEqual(expect.objectContaining({ provider: 'google', code: 'invalid_client' }))
    expect(app.logLines.join('\n')).not.toContain('google-client-secret')
  })

  test('in case of an error, a browser gets a page and a program gets JSON', async () => {
    const page = await new TestBrowser().open(`${app.baseUrl}/auth/google/callback?error=access_denied`, { headers: { accept: 'text/html,*/*' } })
    expect(page.status).toBe(400)
    expect(page.headers.get('content-type')).toContain('text/html')
    expect(page.text).toContain('declined')
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  test('an id token that is signed with another key makes no session', async () => {
    await google.forgeSignatures()
    google.person = { sub: 'g-1', email: 'asha@example.test', email_verified: true }
    const reply = await signIn(new TestBrowser())
    expect([reply.status, reply.json?.error.code]).toEqual([400, 'bad_request'])
  })
})

describe('sign-in without a working provider', () => {
  test('SESS-02 a known provider that is not configured is 503 provider_not_configured', async () => {
    const app = await startApp({ env: { GOOGLE_CLIENT_ID: 'id-without-secret' } })
    try {
      for (const path of ['/auth/google', '/auth/github', '/auth/google/callback', '/auth/github/callback?code=a&state=b']) {
        const reply = await app.call('GET', path, undefined, { token: null })
        expect([reply.status, reply.json.error.code, reply.json.error.type], path).toEqual([503, 'provider_not_configured', 'api_error'])
      }
    } finally {
      await app.stop()
    }
  })

  test('SESS-03 SESS-07 google and github are the only ways to sign in; any other name is 404 not_found', async () => {
    const google = await startGoogle()
    const app = await startApp({ env: { ...google.env, GITHUB_CLIENT_ID: 'a', GITHUB_CLIENT_SECRET: 'b' } })
    try {
      for (const name of ['gitlab', 'Google', 'GITHUB', 'oidc', 'saml', 'facebook', 'apple', 'microsoft', '999999', '__proto__', 'constructor', 'toString'])
        for (const path of [`/auth/${name}`, `/auth/${name}/callback?code=a&state=b`]) {
          const reply = await app.call('GET', path, undefined, { token: null })
          expect([reply.status, reply.json.error.code], path).toEqual([404, 'not_found'])
        }
      for (const name of ['google', 'github']) expect((await app.call('GET', `/auth/${name}`, undefined, { token: null })).status).toBe(302)
      const { text } = await app.call('GET', '/auth', undefined, { token: null })
      expect([...text.matchAll(/href="([^"]*)"/g)].map(match => match[1])).toEqual(['/auth/google', '/auth/github'])
    } finally {
      await app.stop()
      await google.stop()
    }
  })

  test('when a provider does not reply, the error names it, and the next sign-in tries it again', async () => {
    const google = await startGoogle()
    const { port } = new URL(google.url)
    await google.stop()
    const app = await startApp({ env: google.env })
    try {
      const reply = await app.call('GET', '/auth/google', undefined, { token: null })
      expect([reply.status, reply.json.error.code]).toEqual([400, 'unavailable'])
      expect(reply.json.error.message).toContain('Google did not answer')
      const back = await startGoogle(Number(port))
      expect((await app.call('GET', '/auth/google', undefined, { token: null })).status).toBe(302)
      await back.stop()
    } finally {
      await app.stop()
    }
  })

  test('SESS-04 with an https base URL, every cookie is Secure', async () => {
    const google = await startGoogle()
    const app = await startApp({ env: { ...google.env, BASE_URL: 'https://gateway.example.test' } })
    try {
      const [port] = [app.gateway.app.server.address()].map(address => (typeof address === 'object' ? address?.port : 0))
      const local = `http://127.0.0.1:${port}`
      const browser = new TestBrowser()
      const first = await browser.open(`${local}/auth/google`)
      const back = new URL((await browser.open(first.location ?? '')).location ?? '')
      expect(back.origin).toBe('https://gateway.example.test')
      const reply = await browser.open(local + back.pathname + back.search)
      expect(reply.status).toBe(302)
      expect(reply.setCookies.length).toBe(1)
      for (const line of [...first.setCookies, ...reply.setCookies]) expect(line).toMatch(/; HttpOnly; Secure; SameSite=Lax$/)
    } finally {
      await app.stop()
      await google.stop()
    }
  })
})
