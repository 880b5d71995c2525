import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readIssuers } from '../../../src/gateway/access/identity/issuer-file.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import { startApp } from '../../harness/app.ts'
import { startOpenidIssuer } from '../../harness/openid-issuer.ts'
import { fileOf, signInAt } from './company-sign-in.ts'

const entry = {
  id: 'acme',
  name: 'Acme',
  issuer: 'https://id.acme.test',
  client_id: 'c',
  client_secret_env: 'ACME_SECRET',
  domains: { 'acme.test': { org: 1 } },
}
const read = (issuers: readonly object[], env: Record<string, string> = { ACME_SECRET: 's' }) =>
  readIssuers(loadConfig({ ...env, SIGN_IN_FILE: fileOf({ issuers }) }))
const image = (type: string, bytes: string | Buffer) => `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}`
const svg = (body: string) => image('svg+xml', `<svg xmlns="http://www.w3.org/2000/svg">${body}</svg>`)

describe('the file of issuers', () => {
  test('a whole entry has the safe values where it says nothing, and its secret is not printed', () => {
    const [issuer] = read([entry])
    expect(issuer).toMatchObject({ email_verified: 'required', addresses: 'domains', clock_skew_seconds: 60, claims: { email: 'email', groups: null } })
    expect(issuer?.icon).toMatch(/^data:image\/svg/)
    expect(JSON.stringify(issuer)).toContain('[secret]')
    expect(readIssuers(loadConfig({}))).toEqual([])
  })

  test('the file in docs/guides/sign-in.md works as it is written', () => {
    const page = readFileSync(new URL('../../../docs/guides/sign-in.md', import.meta.url), 'utf8')
    const path = fileOf(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '')
    const issuers = readIssuers(loadConfig({ SIGN_IN_FILE: path, ACME_CLIENT_SECRET: 's' }))
    expect(issuers.map(({ id, domains }) => [id, Object.keys(domains)])).toEqual([['acme', ['acme.example', 'contractors.example']]])
  })

  test.each([
    ['a domain where anybody can get an address', { domains: { 'gmail.com': { org: 1 } } }, 'anybody can get an address of gmail.com'],
    ['a public domain of a country', { domains: { 'yahoo.co.uk': {} } }, 'anybody can get an address of yahoo.co.uk'],
    ['a domain in capitals', { domains: { 'Acme.test': { org: 1 } } }, 'lower case'],
    ['a host without a dot', { domains: { localhost: { org: 1 } } }, 'mail domains in lower case'],
    ['no domain, and no trust in every address', { domains: {} }, '"addresses": "any"'],
    ['an issuer over plain http', { issuer: 'http://id.acme.test' }, 'https URL'],
    ['an issuer with a query', { issuer: 'https://id.acme.test/?a=1' }, 'https URL'],
    ['a name that is taken', { id: 'google' }, 'taken'],
    ['a name with a slash', { id: 'a/b' }, 'a-z'],
    ['a skew of an hour', { clock_skew_seconds: 3600 }, '300'],
    ['another claim as address', { claims: { email: 'upn' } }, 'assumed'],
    ['a secret in the file', { client_secret: 'x' }, 'client_secret'],
    ['a secret that is not set', { client_secret_env: 'NOT_SET' }, 'neither NOT_SET nor NOT_SET_FILE is set'],
    ['a picture with a script', { icon: svg('<script>alert(1)</script>') }, 'without scripts'],
    ['a picture with a handler', { icon: svg('<rect onload="x"/>') }, 'without scripts'],
    ['a picture that loads another', { icon: svg('<image href="https://evil.test/a.png"/>') }, 'without scripts'],
    ['a picture of another kind', { icon: image('gif', 'GIF89a') }, 'PNG'],
    ['text that says it is a PNG', { icon: image('png', '<html>') }, 'PNG'],
    ['a picture that is too large', { icon: svg(`<!-- ${'x'.repeat(20_000)} -->`) }, 'PNG'],
    ['the address of a picture', { icon: 'https://acme.test/logo.svg' }, 'PNG'],
    ['no name of an icon', { icon: 'constructor' }, 'PNG'],
  ])('%s is refused with the place in the file', (_title, change, part) => {
    expect(() => read([{ ...entry, ...change }])).toThrow(/issuers\[0\]/)
    expect(() => read([{ ...entry, ...change }])).toThrow(part)
  })

  test('two entries share no id, no issuer, and no domain of two organisations', () => {
    const second = { ...entry, id: 'b', issuer: 'https://b.test' }
    expect(read([entry, second]).length).toBe(2)
    expect(() => read([entry, { ...second, id: 'acme' }])).toThrow('issuers[1].id: "acme" is there twice')
    expect(() => read([entry, { ...second, issuer: entry.issuer }])).toThrow('is there twice')
    expect(() => read([entry, { ...second, domains: { 'acme.test': { org: 2 } } }])).toThrow('claimed for organisation 1 already')
    expect(() => readIssuers(loadConfig({ SIGN_IN_FILE: '/nowhere/sign-in.json' }))).toThrow('cannot be read; SIGN_IN_FILE names the file')
    expect(() => readIssuers(loadConfig({ SIGN_IN_FILE: fileOf('{') }))).toThrow('not valid JSON')
  })
})

test('CAPI-13 an issuer whose metadata lead to another private address, or that is not there at the first sign-in, is refused', async () => {
  const [acme, inner] = [await startOpenidIssuer('', 'acme'), await startOpenidIssuer('', 'acme')]
  const issuers = [{ ...entry, issuer: acme.url, client_id: acme.clientId }]
  const app = await startApp({ env: { SIGN_IN_FILE: fileOf({ issuers }), ACME_SECRET: acme.clientSecret } })
  try {
    const { port } = new URL(acme.url)
    await acme.close()
    const away = await app.call('GET', '/auth/acme', undefined, { token: null })
    expect([away.status, away.json.error.code, away.json.error.message]).toEqual([400, 'unavailable', expect.stringContaining('Acme did not answer')])
    await acme.listen()
    expect(new URL(acme.url).port).toBe(port)
    acme.metadata = document => ({ ...document, token_endpoint: `${inner.url}/token`, jwks_uri: `${inner.url}/keys` })
    acme.person = { sub: 'kim', email: 'kim@acme.test', email_verified: true }
    const { reply } = await signInAt(app, 'acme')
    expect([reply.status, reply.json.error.code]).toEqual([400, 'unavailable'])
    expect(inner.seen).toEqual([])
  } finally {
    await app.stop()
    await Promise.all([acme.close(), inner.close()])
  }
})
