import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bindingsOf, endpointTable } from '../../../src/gateway/http/rows/endpoint-table.ts'
import { codeIn } from '../../agents/family.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type MovableClock, movableClock } from '../../harness/clock.ts'

const bindings = bindingsOf(endpointTable)
const methodOf = (at: string): string => at.split(' ')[0] ?? ''
const pathOf = (at: string): string => (at.split(' ')[1] ?? '').replace(/\{\w+\+?\}/g, '999999')
const sessionRows = bindings.filter(binding => binding.auth === 'session')
const keyRows = bindings.filter(binding => binding.auth === 'key')
const bodyOf = (at: string): object | undefined => (methodOf(at) === 'GET' || methodOf(at) === 'DELETE' ? undefined : {})

describe('sessions', () => {
  let app: TestApp
  let clock: MovableClock
  beforeAll(async () => {
    clock = movableClock()
    app = await startApp({ clock, env: { ANON_RPM: '100000', CONSOLE_ORIGINS: 'https://console.example.test' } })
  })
  afterAll(() => app.stop())

  const outcome = async (cookie: string | undefined, headers: Record<string, string> = {}): Promise<string> => {
    const reply = await app.call('GET', '/me/memory-store', undefined, { token: null, ...(cookie === undefined ? {} : { cookie }), headers })
    return reply.status === 200 ? '200' : `${reply.status} ${reply.json.error.code}`
  }

  test('AUTH-07 every session endpoint answers 401 no_session without a cookie', async () => {
    expect(sessionRows.length).toBeGreaterThan(2)
    for (const { at } of sessionRows) {
      const reply = await app.call(methodOf(at), pathOf(at), bodyOf(at), { token: null })
      expect([reply.status, reply.json.error.code, reply.json.error.type], at).toEqual([401, 'no_session', 'authentication_error'])
    }
  })

  test('AUTH-08 an API key does not count as a session, whatever its scope', async () => {
    const { key: inference } = await app.newKey({ scope: 'inference' })
    for (const { at } of sessionRows)
      for (const token of [app.key, inference, 'br-unknown', 'not a token']) {
        const reply = await app.call(methodOf(at), pathOf(at), bodyOf(at), { token })
        expect([reply.status, reply.json.error.code], `${at} ${token.slice(0, 6)}`).toEqual([401, 'no_session'])
      }
  })

  test('AUTH-09 an agent token reads session endpoints with the rights of a plain member, and writes are refused', async () => {
    const { token } = await app.newAgent('console-reader')
    const kinds = new Set<string>()
    for (const { at, access } of sessionRows) {
      const reply = await app.call(methodOf(at), pathOf(at), bodyOf(at), { token })
      // The stream of hints follows a session, which a token does not have.
      if (access.operator) {
        expect([reply.status, reply.json.error.code], at).toEqual([404, 'not_found'])
        continue
      }
      const isOpen = methodOf(at) === 'GET' && access.role === undefined && access.noAgents !== true
      if (isOpen) expect([401, 403], at).not.toContain(reply.status)
      else expect([reply.status, reply.json.error.code], at).toEqual([403, 'forbidden'])
      kinds.add(isOpen ? 'open' : methodOf(at) !== 'GET' ? 'write' : access.role === undefined ? 'of a session' : 'admin')
    }
    // The agent's key belongs to an owner. `admin` among the refused endpoints shows that the agent does not get the owner's role.
    expect([...kinds].sort()).toEqual(['admin', 'of a session', 'open', 'write'])
  })

  test('a revoked agent cannot read', async () => {
    const agent = await app.newAgent('gone')
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})
    const reply = await app.call('GET', '/me/memory-store', undefined, { token: agent.token })
    expect([reply.status, reply.json.error.code]).toEqual([401, 'invalid_api_key'])
  })

  test('AUTH-10 a session cookie is not accepted on endpoints that need an API key', async () => {
    const cookie = await app.signIn()
    expect(keyRows.length).toBeGreaterThan(10)
    for (const { at, row } of keyRows) {
      const reply = await app.call(methodOf(at), pathOf(at), bodyOf(at), { cookie })
      // Endpoints for OAuth clients use the errors of RFC 6749.
      if (row.clients === 'oauth') expect([reply.status, reply.json.error], at).toEqual([401, 'invalid_client'])
      else expect([reply.status, codeIn(reply.json)], at).toEqual([401, 'invalid_api_key'])
    }
  })

  test('SESS-06 signing out clears the cookie and ends the session everywhere', async () => {
    const [cookie, other] = [await app.signIn(), await app.signIn()]
    expect(await outcome(cookie)).toBe('200')
    const reply = await app.call('POST', '/auth/logout', undefined, { cookie })
    expect([reply.status, reply.json]).toEqual([200, { ok: true, signed_out: true }])
    expect(reply.headers.getSetCookie()).toEqual(['br_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax'])
    for (const { at } of sessionRows) {
      const again = await app.call(methodOf(at), pathOf(at), bodyOf(at), { cookie })
      expect([again.status, again.json.error.code], at).toEqual([401, 'no_session'])
    }
    expect(await outcome(other)).toBe('200')
  })

  test('a session expires after SESSION_TTL_S, and the sweep deletes its row', async () => {
    const cookie = await app.signIn()
    clock.advance(2_592_000_000 - 60_000)
    expect(await outcome(cookie)).toBe('200')
    clock.advance(61_000)
    expect(await outcome(cookie)).toBe('401 no_session')
    expect(await app.gateway.app.sessions.sweep()).toBeGreaterThan(0)
    expect(await outcome(cookie)).toBe('401 no_session')
  })

  test('a cookie that was changed, shortened, combined from two cookies or invented is refused', async () => {
    const value = (await app.signIn()).replace('br_session=', '')
    const [id = '', mac = ''] = value.split('.')
    const [otherId = '', otherMac = ''] = (await app.signIn()).replace('br_session=', '').split('.')
    const flipped = (text: string, at: number): string => `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`
    for (const made of [
      `${flipped(id, 3)}.${mac}`,
      `${id}.${flipped(mac, 3)}`,
      `${id}.${otherMac}`,
      `${otherId}.${mac}`,
      id,
      `${id}.`,
      `.${mac}`,
      `${id}.${mac.slice(0, -2)}`,
      '',
      '.',
      'null',
      '%00.%00',
      `${id}.${mac}${mac}`,
      'x'.repeat(7000),
    ])
      expect(await outcome(`br_session=${made}`), made.slice(0, 60)).toBe('401 no_session')
    expect(await outcome(`other=1; br_session=${value}; more=2`)).toBe('200')
    expect(await outcome(`br_session=${id}.${mac}.rest`)).toBe('401 no_session')
  })

  test('the database contains neither the cookie nor its id', async () => {
    const [id = '', mac = ''] = (await app.signIn()).replace('br_session=', '').split('.')
    const dump = await app.dump()
    expect(dump).not.toContain(id)
    expect(dump).not.toContain(mac)
    expect(dump).not.toContain(Buffer.from(id, 'base64url').toString('hex'))
  })

  test('SESS-11 a write with the cookie from a page of another site is 403, on every endpoint that accepts the cookie', async () => {
    const cookie = await app.signIn()
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.test' },
      { origin: 'null' },
      { origin: `${app.baseUrl}.evil.test` },
      { origin: app.baseUrl.replace(/:\d+$/, ':1') },
      { origin: app.baseUrl.replace('http:', 'https:') },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ]
    // For a person who is no operator, the rows for operators do not exist.
    const writes = bindings.filter(({ at, auth, access }) => auth.endsWith('session') && methodOf(at) !== 'GET' && access.operator !== true)
    expect(writes.length).toBeGreaterThan(1)
    for (const { at } of writes)
      for (const headers of foreign) {
        const reply = await app.call(methodOf(at), pathOf(at), bodyOf(at), { cookie, headers })
        expect([reply.status, reply.json.error.code], `${at} ${JSON.stringify(headers)}`).toEqual([403, 'forbidden'])
        expect(reply.json.error.message).toContain('another site')
      }
    // The session still works, and a read from another site is allowed.
    expect(await outcome(cookie, { origin: 'https://evil.test' })).toBe('200')
  })

  test('a write is accepted from a page of the gateway, an allowed console, another name of this computer, and a program', async () => {
    const port = new URL(app.baseUrl).port
    for (const headers of [
      {},
      { origin: app.baseUrl },
      { origin: 'https://console.example.test' },
      { origin: `http://localhost:${port}` },
      { origin: `http://[::1]:${port}` },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ] as Record<string, string>[]) {
      const reply = await app.call('POST', '/auth/logout', undefined, { cookie: await app.signIn(), headers })
      expect(reply.status, JSON.stringify(headers)).toBe(200)
    }
  })

  test('a person who was removed from an organisation has no session there', async () => {
    const member = await app.newMember('member')
    expect(await outcome(member.cookie)).not.toContain('401')
    const removed = await app.call('DELETE', `/me/members/${member.userId}`, undefined, { cookie: await app.signIn() })
    expect(removed.status).toBe(200)
    expect(await outcome(member.cookie)).toBe('401 no_session')
  })
})
