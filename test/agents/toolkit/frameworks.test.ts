/** The real frameworks and MCP clients on a real gateway. Tokens expire, and agents are revoked, in the middle of a run. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ConnectedAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import type { RecordedRequest, UpstreamScript } from '../../harness/upstream-server.ts'
import { frameworks } from './frameworks.ts'
import { countedAgent, revoke, toolCallReply, wordsOf } from './setup.ts'

const clock = movableClock()
const info = { name: 'test', version: '1' }
let app: TestApp
const open: { close(): Promise<void> }[] = []

beforeAll(async () => {
  app = await startApp({ clock })
})
afterAll(() => app?.stop())
beforeEach(() => app.alpha.reset())
afterEach(async () => {
  for (const client of open.splice(0)) await client.close()
})

/** Calls the tool first, and answers when the tool result is there. */
function asksForTool({ json }: RecordedRequest): UpstreamScript {
  const messages = json?.['messages'] as { role: string }[]
  return messages.some(({ role }) => role === 'tool') ? {} : toolCallReply('wait', {}, 1)
}

describe.each(frameworks.map(framework => [framework.name, framework] as const))('TOOL-01 %s', (_name, framework) => {
  test('a token that expires in the middle of a run is replaced, and the run continues', async () => {
    const { agent, sent } = await countedAgent(app)
    app.alpha.script(asksForTool)
    const answer = await framework.run(agent, async () => {
      clock.advance(20 * 60_000)
      return 'waited'
    })
    expect(answer).toBe('Hello from the test upstream')
    expect(sent.filter(line => line.startsWith('401'))).toHaveLength(1)
    expect(sent.filter(line => line.endsWith('/token'))).toEqual(['200 /v1/me/agents/:id/token', '200 /v1/me/agents/:id/token'])
  })

  test('a revocation in the middle of a run ends it immediately, and no further request is sent', async () => {
    const { id, agent, sent, ends } = await countedAgent(app)
    app.alpha.script(asksForTool)
    let before = 0
    const run = framework.run(agent, async () => {
      await revoke(app, id)
      before = sent.length
      return 'waited'
    })
    const error = await run.then(
      answer => expect.fail(`answered ${answer}`),
      (thrown: unknown) => thrown,
    )
    expect(wordsOf(error)).toContain('agent_revoked')
    expect(sent.slice(before)).toEqual([expect.stringMatching(/^401 \/v1\//)])
    expect(ends).toEqual(['agent_revoked'])
    await expect(framework.run(agent, async () => 'never')).rejects.toSatisfy(thrown => wordsOf(thrown).includes('agent_revoked'))
    expect(sent.slice(before), 'nobody asks for a revoked agent').toHaveLength(1)
  })

  test('the stream of a revoked agent ends with an error, and the next call gives the reason without a second try', async () => {
    const { id, agent, sent } = await countedAgent(app)
    app.alpha.script({ holdAfterChunks: 2 })
    let before = 0
    const streamed = framework.stream(agent, async () => {
      before = sent.length
      await revoke(app, id)
    })
    const isNamed = (thrown: unknown): boolean => wordsOf(thrown).includes('agent_revoked')
    await expect(streamed).rejects.toSatisfy(thrown => isNamed(thrown) || framework.hidesReason === true)
    expect(sent.slice(before), 'no second try').toEqual([])
    await expect(framework.run(agent, async () => 'never')).rejects.toSatisfy(isNamed)
    expect(sent.slice(before)).toEqual([expect.stringMatching(/^401 /)])
  })
})

/** Calls the tool whoami and returns its result. */
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
  test('a token that expires in the middle of a run is replaced, and a revocation ends the run immediately', async () => {
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

test('an MCP client can choose toolsets', async () => {
  const { agent } = await countedAgent(app)
  expect(agent.mcp({ toolsets: ['core', 'memory'] })[0].href).toBe(`${app.baseUrl}/mcp?toolsets=core%2Cmemory`)
})
