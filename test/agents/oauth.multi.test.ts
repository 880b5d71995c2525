import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { exchangeParameters } from './oauth-calls.ts'
import { type OidcIssuer, startOidcIssuer } from './oidc-issuer.ts'

const ageNext = statement<[]>('test.age_next_key_of_fleet', `update signing_keys set created_at = created_at - interval '1 day' where state = 'next'`)

describe.runIf(onPostgres)('tokens over several processes', () => {
  let fleet: Fleet
  let issuer: OidcIssuer
  let processes: readonly GatewayProcess[]
  let cookie: string
  beforeAll(async () => {
    issuer = await startOidcIssuer()
    await issuer.addKey('one')
    fleet = await startFleet({ OUTBOUND_ALLOW: issuer.hostPort })
    processes = [await fleet.start(), await fleet.start()]
    cookie = await fleet.signIn()
  })
  afterAll(async () => {
    await fleet?.stop()
    await issuer?.close()
  })

  const at = (i: number): GatewayProcess => processes[i] as GatewayProcess
  const form = (process: GatewayProcess, path: string, body: Record<string, string>, token?: string) =>
    fetch(process.baseUrl + path, { method: 'POST', body: new URLSearchParams(body), headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })
  const console = (process: GatewayProcess, method: string, path: string, body?: unknown) =>
    fetch(process.baseUrl + path, {
      method,
      headers: { cookie, origin: 'http://brigade.test', 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const reasonOf = async (process: GatewayProcess, token: string): Promise<unknown> => (await chat(process, token, 1)).json.reason

  test('a token that is revoked on one process is refused and cut on another, and refused on a process that starts later', async () => {
    const { id, token } = await fleet.newAgent('revoked alone', null)
    const sibling = (await call(at(0), fleet.key, 'POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    expect((await chat(at(1), token, 1)).status).toBe(200)
    fleet.upstream.reset()
    fleet.upstream.script(() => ({ holdAfterChunks: 2 }))
    const running = chat(at(1), token, 10, { stream: true })
    await fleet.upstream.arrived(1)
    expect((await form(at(0), '/oauth/revoke', { token }, fleet.key)).status).toBe(200)
    expect((await running).text).toContain('This agent token has been revoked.')
    await until(async () => (await reasonOf(at(1), token)) === 'token_revoked')
    fleet.upstream.reset()
    expect((await chat(at(1), sibling, 1)).status).toBe(200)
    const late = await fleet.start()
    expect(await reasonOf(late, token)).toBe('token_revoked')
    expect((await chat(late, sibling, 1)).status).toBe(200)
  })

  test('after a trust rule is deleted on one process, another process issues no tokens for it, and its tokens end there', async () => {
    const { id } = await fleet.newAgent('trusted', null)
    const { keys } = (await (await console(at(0), 'GET', '/me/keys')).json()) as { keys: { id: number }[] }
    const params = { name: 'fleet', issuer: issuer.url, subject: 'repo:acme/*', audience: 'fleet', agent_id: id, key_id: keys[0]?.id }
    const made = await console(at(0), 'POST', '/me/agent-trust', params)
    expect(made.status).toBe(201)
    const rule = (await made.json()) as { id: number }
    const external = { ...exchangeParameters, subject_token: await issuer.token({ aud: 'fleet' }) }
    const { access_token: token } = (await (await form(at(1), '/oauth/token', external)).json()) as { access_token: string }
    expect(decodeJwt(token).sub).toBe(`agent:${id}`)
    expect((await chat(at(1), token, 1)).status).toBe(200)
    expect((await console(at(0), 'DELETE', `/me/agent-trust/${rule.id}`)).status).toBe(200)
    expect((await form(at(1), '/oauth/token', external)).status).toBe(400)
    await until(async () => (await reasonOf(at(1), token)) === 'token_revoked')
  })

  test('a rotation on one process applies on another, and tokens that were issued before still work', async () => {
    const { id, token } = await fleet.newAgent('rotated', null)
    const { keys } = (await (await fetch(`${at(1).baseUrl}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] }
    await fleet.db.exec(ageNext)
    const { out } = await fleet.command('admin', 'rotate-signing-key', '--json')
    expect(JSON.parse(out)).toEqual({ rotated: true, kid: keys[1]?.kid })
    const mint = async (i: number): Promise<string> => (await call(at(i), fleet.key, 'POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    await until(async () => decodeProtectedHeader(await mint(1)).kid === keys[1]?.kid)
    for (const each of [token, await mint(0), await mint(1)]) for (const i of [0, 1]) expect((await chat(at(i), each, 1)).status).toBe(200)
  })
})
