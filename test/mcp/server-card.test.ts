import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mcpIdentity } from '../../src/mcp/instructions.ts'
import { aiCatalog, serverCard, serverCardShape } from '../../src/mcp/server-card.ts'
import { version } from '../../src/version.ts'

const generated = new URL('../../server-card/server-card.json', import.meta.url)

describe('server card', () => {
  test('the generated copy is what the builder makes (UPDATE_GOLDEN=1 writes it)', () => {
    const text = `${JSON.stringify(serverCard('https://gateway.example.com', 'brigade', version), null, 2)}\n`
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(generated, text)
    expect(readFileSync(generated, 'utf8')).toBe(text)
  })

  test.each(['https://gw.acme.com', 'http://127.0.0.1:8787', 'http://[::1]:8787', 'http://gateway:8787'])(
    'it keeps the published rules for a gateway at %s',
    baseUrl => {
      const card = serverCardShape.parse(serverCard(baseUrl, 'my brigade', '1.4.0-rc.1'))
      expect(card.remotes[0]?.url).toBe(`${baseUrl}/mcp`)
      expect(card.authentication).toEqual({ required: true, schemes: ['bearer'] })
    },
  )

  test('its name is the reverse of the host', () => {
    expect(serverCard('https://gw.acme.com', 'brigade', '1.0.0').name).toBe('com.acme.gw/brigade')
  })

  test('the shape refuses a version range, a long description and a name without a slash', () => {
    const card = serverCard('https://gw.acme.com', 'brigade', '1.0.0')
    for (const wrong of [{ version: '^1.0.0' }, { description: 'x'.repeat(101) }, { name: 'brigade' }])
      expect(serverCardShape.safeParse({ ...card, ...wrong }).success).toBe(false)
  })

  test('it agrees with what the server says of itself', () => {
    const identity = mcpIdentity('brigade', '1.0.0')
    const card = serverCard('https://gw.acme.com', 'brigade', '1.0.0')
    expect([card.serverInfo.name, card.title, card.version]).toEqual([identity.name, identity.title, identity.version])
    expect(Buffer.byteLength(identity.instructions)).toBeLessThan(2048)
  })

  test('the AI catalog points at the card', () => {
    expect(aiCatalog('https://gw.acme.com', serverCard('https://gw.acme.com', 'brigade', '1.0.0'))).toMatchObject({
      entries: [{ identifier: 'urn:air:gw.acme.com:brigade', url: 'https://gw.acme.com/mcp/server-card', type: 'application/mcp-server-card+json' }],
    })
  })
})
