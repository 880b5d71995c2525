import { describe, expect, test } from 'vitest'
import { allowedHostNames, checkOrigin, withBearer, withChallenge } from '../../src/mcp/transport/guard.ts'
import { fail } from '../../src/platform/errors.ts'

const names = allowedHostNames('https://gw.acme.com', ['Gateway.Internal', 'proxy.internal:8443', 'http://other.internal/', 'fd00::7', 'münchen.example', ' '])

describe('origin check', () => {
  test.each([
    ...['gw.acme.com', 'gw.acme.com:443', 'GW.Acme.COM', 'gw.acme.com.', 'localhost:8787', 'LOCALHOST', '127.0.0.1', '[::1]:8787', '[0:0:0:0:0:0:0:1]'],
    ...['gateway.internal', 'proxy.internal', 'proxy.internal:1', 'other.internal', '[fd00::7]:8787', 'xn--mnchen-3ya.example'],
  ])('the Host %s is accepted', host => {
    expect(() => checkOrigin({ host }, names)).not.toThrow()
  })

  test.each([
    ...['evil.example', 'gw.acme.com.evil.example', 'evilgw.acme.com', '10.0.0.5', '0.0.0.0', '[::]', '[::2]', '', '.', 'gw.acme.com..'],
    ...['evil@localhost', 'localhost/evil', 'localhost?evil', 'localhost#evil', 'localhost:99999', 'gw.acme.com, evil.example', 'xn--gw-acme.com'],
  ])('the Host "%s" of a DNS rebinding attack is refused', host => {
    expect(() => checkOrigin({ host }, names)).toThrow('Host')
  })

  test('a request without Host is refused, even when another header names the host', () => {
    expect(() => checkOrigin({}, names)).toThrow('Host')
    expect(() => checkOrigin({ host: 'evil.example', 'x-forwarded-host': 'gw.acme.com' }, names)).toThrow('Host')
  })

  test.each([
    ...['https://evil.example', 'null', 'nonsense', 'gw.acme.com', '//gw.acme.com', 'https://gw.acme.com.evil.example', 'https://gw.acme.com@evil.example'],
    ...['https://evil.example#@gw.acme.com', 'https://evil@gw.acme.com', 'chrome-extension://localhost', 'file://localhost', 'http://0.0.0.0:8787'],
    'https://gw.acme.com, https://evil.example',
  ])('the Origin %s is refused', origin => {
    expect(() => checkOrigin({ host: 'gw.acme.com', origin }, names)).toThrow('Origin')
  })

  test.each(['https://gw.acme.com', 'https://GW.acme.com:8443', 'https://gw.acme.com.', 'http://localhost:6274', 'http://[::1]:3000', ''])(
    'the Origin "%s" of the gateway is accepted, and so is a request without Origin',
    origin => {
      for (const headers of [{ host: 'gw.acme.com' }, { host: 'gw.acme.com', origin }]) expect(() => checkOrigin(headers, names)).not.toThrow()
    },
  )
})

describe('credential headers', () => {
  test('x-br-api-key takes precedence over Authorization, and Authorization over x-api-key. x-api-key counts only with a gateway credential', () => {
    expect(withBearer({ 'x-br-api-key': 'br-1', authorization: 'Bearer theirs' }).authorization).toBe('Bearer br-1')
    expect(withBearer({ 'x-api-key': 'br-2', authorization: 'Bearer br-3' }).authorization).toBe('Bearer br-3')
    expect(withBearer({ 'x-api-key': 'eyJ.eyJ.sig' }).authorization).toBe('Bearer eyJ.eyJ.sig')
    expect(withBearer({ 'x-api-key': 'sk-ant-other' }).authorization).toBeUndefined()
  })
})

describe('the challenge of a 401', () => {
  const braced = ['$', '{BRIGADE_KEY}'].join('')
  const refusal = fail('invalid_api_key', { message: 'This API key has been revoked.' })
  const challenge = (error: ReturnType<typeof fail>, authorization?: string) =>
    withChallenge(error, 'brigade "eu"', authorization === undefined ? {} : { authorization })

  test.each([
    [undefined, 'No credential came.'],
    ['Bearer', 'The credential is empty'],
    ['Bearer ', 'The credential is empty'],
    [`Bearer ${braced}`, 'name of a variable'],
    ['Bearer $BRIGADE_KEY', 'name of a variable'],
    ['Bearer {env:BRIGADE_KEY}', 'name of a variable'],
    [braced, 'name of a variable'],
    ['Bearer %BRIGADE_KEY%', 'name of a variable'],
    ['Basic YnI6YnI=', 'another form than Bearer'],
    ['br-0123456789', 'another form than Bearer'],
    ['Bearer sk-0123456789', 'neither an API key'],
  ])('the 401 for Authorization "%s" says what to send and repeats nothing of the header', (authorization, says) => {
    const { message } = challenge(refusal, authorization)
    expect(message).toContain(says)
    expect(message).toContain('"Authorization: Bearer ')
    expect(message).toContain('brigade connect')
    expect(message).not.toMatch(/BRIGADE_KEY|YnI6|0123/)
  })

  test('the 401 for a credential that is no longer valid gives the reason, and for an expired token it says who renews it', () => {
    expect(challenge(refusal, 'Bearer br-1').message).toBe('This API key has been revoked.')
    const expired = fail('invalid_api_key', { message: 'This agent token has expired. Mint a new one.', extra: { reason: 'token_expired' } })
    const told = challenge(expired, 'Bearer a.b.c')
    expect(told.message).toMatch(/^This agent token has expired\. Mint a new one\. `brigade mcp --agent <name>`/)
    expect(told.options.headers?.['www-authenticate']).toBe('Bearer realm="brigade eu", error="invalid_token", error_description="token_expired"')
  })

  test('an error with a status other than 401 does not change', () => {
    expect(challenge(fail('database_unavailable')).options.headers?.['www-authenticate']).toBeUndefined()
  })
})
