/** Agents of jobs and pods: tokens of another issuer in place of an API key. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { createAgentTokenProvider } from '../../../src/agents/toolkit/token-provider.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { type OidcIssuer, startOidcIssuer } from '../oidc-issuer.ts'
import { countingFetch, revoke } from './setup.ts'

const clock = movableClock()
let app: TestApp
let issuer: OidcIssuer
beforeAll(async () => {
  issuer = await startOidcIssuer()
  await issuer.addKey('one')
  app = await startApp({ clock, env: { OUTBOUND_ALLOW: issuer.hostPort } })
})
afterAll(async () => {
  await app?.stop()
  await issuer?.close()
})

/** An agent with a rule for a subject, and the tokens that its platform gives out, which live two minutes. */
async function trusted(name: string, subject = name) {
  const { id } = (await app.call('POST', '/v1/me/agents', { name })).json
  const rule = { name, issuer: issuer.url, subject, agent_id: id, key_id: app.keyId }
  expect((await app.call('POST', '/me/agent-trust', rule, { cookie: await app.signIn() })).status).toBe(201)
  const now = (): number => Math.floor(clock.nowMs() / 1000)
  const credential = () => issuer.token({ sub: subject, aud: `${app.baseUrl}/orgs/${app.orgId}`, iat: now(), nbf: now(), exp: now() + 120 })
  return { id: Number(id), credential }
}

test('the platform token is asked for at each mint, and an agent that is revoked ends the connection', async () => {
  const { id, credential } = await trusted('deployer')
  const sent: string[] = []
  let asked = 0
  const agent = connectAgent({
    baseUrl: app.baseUrl,
    exchange: true,
    fetch: countingFetch(sent),
    scope: 'usage:read',
    credential() {
      asked++
      return credential()
    },
  })
  expect(await agent.whoami()).toMatchObject({ agent: { id, name: 'deployer' }, scope: 'usage:read' })
  clock.advance(20 * 60_000)
  expect(await agent.whoami()).toMatchObject({ agent: { id } })
  expect(asked).toBe(2)
  await revoke(app, id)
  const before = sent.length
  for (let turn = 0; turn < 3; turn++) await expect(agent.whoami()).rejects.toMatchObject({ name: 'AgentRevokedError', code: 'agent_revoked' })
  expect(sent.slice(before)).toEqual(['401 /v1/me/whoami'])
})

test('where rules for several agents take a token, an id chooses; a name is held against what came', async () => {
  const { id, credential } = await trusted('first', 'shared')
  const tokens = (agent?: string | number) => createAgentTokenProvider({ baseUrl: app.baseUrl, exchange: true, credential, agent })
  expect(await tokens('first').get()).toMatchObject({ agentId: id })
  await expect(tokens('second').get()).rejects.toMatchObject({ message: expect.stringContaining('a token of the agent "first", not of "second"') })
  const second = await trusted('second', 'shared')
  expect(await tokens(second.id).get()).toMatchObject({ agentId: second.id })
  await expect(tokens().get()).rejects.toMatchObject({ code: 'invalid_request', status: 400, message: expect.stringContaining('Name one') })
})

test('what the gateway says of a token that it does not take comes in its words', async () => {
  const tokens = createAgentTokenProvider({ baseUrl: app.baseUrl, exchange: true, credential: 'no-token' })
  await expect(tokens.getToken()).rejects.toMatchObject({ name: 'BrigadeError', code: 'invalid_request', message: expect.stringMatching(/\w+ \w+/) })
})
