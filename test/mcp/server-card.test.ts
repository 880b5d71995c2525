import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mcpIdentity } from '../../src/mcp/documents/instructions.ts'
import { aiCatalog, serverCard, serverCardShape } from '../../src/mcp/documents/server-card.ts'
import { version } from '../../src/version.ts'

const example = serverCard('https://gateway.example.com', 'brigade', version)
const copies = [
  ['server-card.json', example],
  ['ai-catalog.json', aiCatalog('https://gateway.example.com', example)],
] as const

describe('server card', () => {
  test.each(copies)("the generated copy %s equals the builder's output (UPDATE_GOLDEN=1 writes it)", (name, document) => {
    const generated = new URL(`../../server-card/${name}`, import.meta.url)
    const text = `${JSON.stringify(document, null, 2)}\n`
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(generated, text)
    expect(readFileSync(generated, 'utf8')).toBe(text)
  })

  test.each(['https://gw.acme.com', 'http://127.0.0.1:8787', 'http://[::1]:8787', 'http://gateway:8787'])(
    'the card obeys the published rules for a gateway at %s',
    baseUrl => {
      const card = serverCardShape.parse(serverCard(baseUrl, 'my brigade', '1.4.0-rc.1'))
      expect(card.remotes[0]?.url).toBe(`${baseUrl}/mcp`)
      expect(card.authentication).toEqual({ required: true, schemes: ['bearer'] })
    },
  )

  test('the name of the card begins with the reversed host', () => {
    expect(serverCard('https://gw.acme.com', 'brigade', '1.0.0').name).toBe('com.acme.gw/brigade')
  })

  const card = serverCard('https://gw.acme.com', 'brigade', '1.0.0')
  const [remote] = card.remotes

  test.each([
    ['a version range', { version: '^1.0.0' }],
    ['several versions', { version: '1.0.0 - 2.0.0' }],
    ['an empty description', { description: '' }],
    ['a long description', { description: 'x'.repeat(101) }],
    ['a long title', { title: 'x'.repeat(101) }],
    ['a name without a slash', { name: 'brigade' }],
    ['a name with two', { name: 'com.acme/gateway/brigade' }],
    ['another schema', { $schema: 'https://example.com/schema.json' }],
    ['no remote', { remotes: [] }],
    ['a remote of another transport', { remotes: [{ ...remote, type: 'sse' }] }],
    ['a remote without a host', { remotes: [{ ...remote, url: '/mcp' }] }],
    ['a remote of another scheme', { remotes: [{ ...remote, url: 'ftp://gw.acme.com/mcp' }] }],
    ['an invalid protocol version', { remotes: [{ ...remote, supportedProtocolVersions: ['1.0'] }] }],
    ['a server that takes no credential', { authentication: { required: false, schemes: [] } }],
  ])('the schema refuses %s', (_what, wrong) => {
    expect(serverCardShape.safeParse(card).success).toBe(true)
    expect(serverCardShape.safeParse({ ...card, ...wrong }).success).toBe(false)
  })

  test('an operator may give the server any name, and the card stays valid', () => {
    for (const serviceId of ['Küche & Co "eu"', 'x'.repeat(300), '…'])
      expect(serverCardShape.safeParse(serverCard('https://gw.acme.com', serviceId, '1.0.0')).error).toBeUndefined()
  })

  test('the card agrees with what the server says about itself', () => {
    const identity = mcpIdentity('brigade', '1.0.0')
    const card = serverCard('https://gw.acme.com', 'brigade', '1.0.0')
    expect([card.serverInfo.name, card.title, card.version]).toEqual([identity.name, identity.title, identity.version])
    expect(Buffer.byteLength(identity.instructions)).toBeLessThan(2048)
  })

  test('the AI catalog contains the URL of the card', () => {
    expect(aiCatalog('https://gw.acme.com', serverCard('https://gw.acme.com', 'brigade', '1.0.0'))).toMatchObject({
      entries: [{ identifier: 'urn:air:gw.acme.com:brigade', url: 'https://gw.acme.com/mcp/server-card', type: 'application/mcp-server-card+json' }],
    })
  })
})
