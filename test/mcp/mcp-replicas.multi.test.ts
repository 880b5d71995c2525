/** /mcp on several gateway processes behind one address. Each POST of a client may go to another process. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { onPostgres } from '../harness/database.ts'
import { type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { until } from '../harness/until.ts'
import { info } from './mcp-clients.ts'
import { type AnyClient, closeClients, connectV2 } from './raw-clients.ts'

describe.runIf(onPostgres)('MCP over two processes', () => {
  let fleet: Fleet
  let server: S3TestServer
  let members: GatewayProcess[]
  const urlOf = (n: number) => members[n % members.length]?.baseUrl ?? ''
  beforeAll(async () => {
    server = await startS3Server()
    fleet = await startFleet({ OUTBOUND_ALLOW: server.hostPort })
    members = await Promise.all([fleet.start(), fleet.start()])
    const { endpoint, bucket, accessKey, secretKey } = server
    const store = { endpoint, bucket, access_key: accessKey, secret_key: secretKey }
    const put = await fetch(`${urlOf(0)}/v1/me/memory-store`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${fleet.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(store),
    })
    expect(put.status).toBe(200)
  }, 120_000)
  afterAll(async () => {
    await closeClients()
    await fleet?.stop()
    await server?.close()
  })

  const put = (n: number, key: string, token = fleet.key) =>
    fetch(`${urlOf(n)}/v1/me/memory/o?key=${key}`, { method: 'PUT', headers: { authorization: `Bearer ${token}` }, body: 'x' })

  /** Sends each request to the next process in turn. */
  function alternating() {
    const served: string[] = []
    const next = (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
      const url = new URL(input instanceof Request ? input.url : input)
      const base = urlOf(served.length)
      served.push(base)
      return fetch(`${base}${url.pathname}${url.search}`, init)
    }
    const requestInit = { headers: { authorization: `Bearer ${fleet.key}` } }
    return { served, next: next as typeof fetch, requestInit }
  }

  const clients = {
    'initialize era': async () => {
      const { served, next, requestInit } = alternating()
      const client = new ClientV1(info)
      await client.connect(new TransportV1(new URL(`${urlOf(0)}/mcp`), { requestInit, fetch: next }) as never)
      return { client: client as unknown as AnyClient & ClientV1, served }
    },
    'discover era': async () => {
      const { served, next, requestInit } = alternating()
      const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
      await client.connect(new TransportV2(new URL(`${urlOf(0)}/mcp`), { requestInit, fetch: next }))
      return { client: client as unknown as AnyClient & ClientV1, served }
    },
  }

  test.each(Object.entries(clients))('MCPX-02 a client whose POSTs alternate between two processes works in the %s', async (era, connect) => {
    const { client, served } = await connect()
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(names)
    const key = `agents/replicas/${era.slice(0, 3)}.md`
    for (let n = 0; n < 4; n++) {
      expect((await client.callTool({ name: 'memory_write', arguments: { key, content: `round ${n}` } })).isError).toBeFalsy()
      expect((await client.callTool({ name: 'memory_read', arguments: { key } })).structuredContent).toMatchObject({ content: `round ${n}` })
      expect((await client.readResource({ uri: `memory://${key}` })).contents[0].text).toContain(`round ${n}`)
    }
    expect((await client.listResources()).resources.length).toBeGreaterThan(3)
    expect((await client.getPrompt({ name: 'recall', arguments: { topic: 'round' } })).messages).toHaveLength(2)
    expect(new Set(served).size).toBe(2)
    await client.close()
  })

  test('MEMX-08 a write on one process is reported to listeners of the key and of its folder on the other process', async () => {
    const listener = await connectV2(urlOf(0), fleet.key)
    const heard: string[] = []
    listener.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
    await listener.listen({ resourceSubscriptions: ['memory://agents/far/', 'memory://agents/far/a'] })
    expect((await put(1, 'agents/far/a')).status).toBe(200)
    await until(() => heard.length === 2, 'news of the other process')
    expect(heard.sort()).toEqual(['memory://agents/far/', 'memory://agents/far/a'])
    expect((await put(0, 'agents/far/b')).status).toBe(200)
    await until(() => heard.length === 3, 'news of its own process')
  })

  test('a revocation on one process ends the stream on the other', async () => {
    const agent = await fleet.newAgent('replica-agent', null)
    const listener = await connectV2(urlOf(0), agent.token)
    const subscription = await listener.listen({ resourceSubscriptions: ['memory://agents/'] })
    const revoked = await fetch(`${urlOf(1)}/v1/me/agents/${agent.id}/revoke`, { method: 'POST', headers: { authorization: `Bearer ${fleet.key}` } })
    expect(revoked.status).toBe(200)
    expect(await subscription.closed).toBe('graceful')
  })
})
