/** The MCP clients of both SDKs through the toolkit: a token that expires between two calls, and an agent that is revoked. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ConnectedAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { countedAgent, revoke, wordsOf } from './setup.ts'

const clock = movableClock()
const info = { name: 'test', version: '1' }
let app: TestApp
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  app = await startApp({ clock })
})
afterAll(() => app?.stop())
afterEach(async () => {
  for (const client of open.splice(0)) await client.close()
})

/** The name of the agent that a tool call speaks for. */
type Whoami = () => Promise<unknown>

async function connectV1(agent: ConnectedAgent): Promise<Whoami> {
  const client = new ClientV1(info)
  await client.connect(new TransportV1(...agent.mcp()) as never)
  open.push(client)
  return async () => (await client.callTool({ name: 'whoami', arguments: {} })).structuredContent
}

async function connectV2(agent: ConnectedAgent): Promise<Whoami> {
  const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new TransportV2(...agent.mcp()))
  open.push(client)
  return async () => (await client.callTool({ name: 'whoami', arguments: {} })).structuredContent
}

describe.each([
  ['@modelcontextprotocol/sdk', connectV1],
  ['@modelcontextprotocol/client', connectV2],
] as const)('TOOL-01 %s', (_name, connect) => {
  test('a token that expires in the middle of a run is replaced, and an agent that is revoked ends it at once', async () => {
    const { id, name, agent, sent, ends } = await countedAgent(app)
    const whoami = await connect(agent)
    expect(await whoami()).toMatchObject({ agent: { name } })

    clock.advance(20 * 60_000)
    let before = sent.length
    expect(await whoami()).toMatchObject({ agent: { name } })
    expect(sent.slice(before)).toEqual(['401 /mcp', '200 /v1/me/agents/:id/token', '200 /mcp'])

    await revoke(app, id)
    before = sent.length
    await expect(whoami()).rejects.toSatisfy(thrown => wordsOf(thrown).includes('agent_revoked'))
    await expect(whoami()).rejects.toSatisfy(thrown => wordsOf(thrown).includes('agent_revoked'))
    expect(sent.slice(before)).toEqual(['401 /mcp'])
    expect(ends).toEqual(['agent_revoked'])
  })
})

test('toolsets may be named', async () => {
  const { agent } = await countedAgent(app)
  expect(agent.mcp({ toolsets: ['core', 'memory'] })[0].href).toBe(`${app.baseUrl}/mcp?toolsets=core%2Cmemory`)
})
