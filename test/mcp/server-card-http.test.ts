import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serverCardShape } from '../../src/mcp/documents/server-card.ts'
import { version } from '../../src/version.ts'
import { startApp, type TestApp } from '../harness/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.stop())

describe('server card', () => {
  test('DISC-04 DISC-05 the card is public JSON with the URL of /mcp and the fields of both drafts. It is readable across origins and cached', async () => {
    const reply = await app.call('GET', '/.well-known/mcp/server-card.json', undefined, { token: null })
    expect(reply.status).toBe(200)
    expect(reply.headers.get('content-type')).toContain('application/json')
    const card = serverCardShape.parse(reply.json)
    expect(card).toMatchObject({
      version,
      remotes: [{ type: 'streamable-http', url: `${app.baseUrl}/mcp` }],
      serverInfo: { name: 'brigade', version },
      transport: { type: 'streamable-http' },
      authentication: { required: true, schemes: ['bearer'] },
    })
    expect(card.name.length).toBeGreaterThan(2)
    expect(card.description.length).toBeLessThanOrEqual(100)
    expect(reply.headers.get('access-control-allow-origin')).toBe('*')
    expect(reply.headers.get('cache-control')).toContain('max-age=')
  })

  test('DISC-05 the card is the same at its reserved path, and a reader with a current copy gets 304', async () => {
    const wellKnown = await app.call('GET', '/.well-known/mcp/server-card.json', undefined, { token: null })
    const reserved = await app.call('GET', '/mcp/server-card', undefined, { token: null })
    expect(reserved.headers.get('content-type')).toBe('application/mcp-server-card+json')
    expect(reserved.json).toEqual(wellKnown.json)
    const again = await app.call('GET', '/mcp/server-card', undefined, { token: null, headers: { 'if-none-match': reserved.headers.get('etag') ?? '' } })
    expect([again.status, again.text]).toEqual([304, ''])
    const catalog = await app.call('GET', '/.well-known/ai-catalog.json', undefined, { token: null })
    expect(catalog.json.entries[0].url).toBe(`${app.baseUrl}/mcp/server-card`)
  })

  test('DISC-05 the card matches what the connected server reports', async () => {
    const card = (await app.call('GET', '/mcp/server-card', undefined, { token: null })).json
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    const answer = await app.call(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'initialize', params },
      { headers: { accept: 'application/json, text/event-stream' } },
    )
    const message = answer.json ?? JSON.parse(/^data: (.*)$/m.exec(answer.text)?.[1] ?? 'null')
    const { serverInfo, protocolVersion } = message.result
    expect([card.serverInfo.name, card.version, card.title]).toEqual([serverInfo.name, serverInfo.version, serverInfo.title])
    expect(card.remotes[0].supportedProtocolVersions).toContain(protocolVersion)
  })
})
