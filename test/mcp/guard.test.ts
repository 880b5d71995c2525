import { describe, expect, test } from 'vitest'
import { allowedHostNames, checkOrigin, withBearer } from '../../src/mcp/guard.ts'

const names = allowedHostNames('https://gw.acme.com', ['Gateway.Internal'])

describe('origin check', () => {
  test.each(['gw.acme.com', 'gw.acme.com:443', 'localhost:8787', '127.0.0.1', '[::1]:8787', 'gateway.internal'])('the Host %s is served', host => {
    expect(() => checkOrigin({ host }, names)).not.toThrow()
  })

  test.each(['evil.example', 'gw.acme.com.evil.example', '10.0.0.5', ''])('the Host "%s" of a rebound name is refused', host => {
    expect(() => checkOrigin({ host }, names)).toThrow('Host')
  })

  test.each(['https://evil.example', 'null', 'nonsense'])('the Origin %s is refused', origin => {
    expect(() => checkOrigin({ host: 'gw.acme.com', origin }, names)).toThrow('Origin')
  })

  test('our own Origin and none at all are served', () => {
    for (const headers of [{ host: 'gw.acme.com' }, { host: 'gw.acme.com', origin: 'https://gw.acme.com' }])
      expect(() => checkOrigin(headers, names)).not.toThrow()
  })
})

describe('credential headers', () => {
  test('x-br-api-key goes before Authorization, x-api-key after it, and only gateway credentials count', () => {
    expect(withBearer({ 'x-br-api-key': 'br-1', authorization: 'Bearer theirs' }).authorization).toBe('Bearer br-1')
    expect(withBearer({ 'x-api-key': 'br-2', authorization: 'Bearer br-3' }).authorization).toBe('Bearer br-3')
    expect(withBearer({ 'x-api-key': 'eyJ.eyJ.sig' }).authorization).toBe('Bearer eyJ.eyJ.sig')
    expect(withBearer({ 'x-api-key': 'sk-ant-other' }).authorization).toBeUndefined()
  })
})
