/** The commands that act as a person: keys, providers, logs, and the ways to be that person. */
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { startProgram } from '../harness/started-program.ts'
import { until } from '../harness/until.ts'
import { type Ran, runHere } from './run-here.ts'
import { brigade } from './stdio-clients.ts'

describe('commands of a signed-in person', { timeout: 120_000 }, () => {
  let app: TestApp
  let home: string
  beforeAll(async () => {
    app = await startApp({ env: { SANDBOX: 'on' } })
    home = mkdtempSync(join(tmpdir(), 'brigade-person-'))
    const { email } = (await app.call('GET', '/me', undefined, { cookie: await app.signIn() })).json
    const { url } = await app.gateway.app.makeSignInLink(email)
    const { code, out, err } = await run(['login', '--link', url])
    expect([code, err, out]).toEqual([0, '', expect.stringContaining(`Signed in to ${app.baseUrl}.`)])
    const again = await run(['login', '--link', url])
    expect([again.code, again.err]).toEqual([3, expect.stringContaining('does not accept the sign-in link')])
  })
  afterAll(async () => {
    await app.stop()
    rmSync(home, { recursive: true, force: true })
  })

  const session = (): string => join(home, 'brigade', 'session.json')
  const envOf = (key?: string): Record<string, string> => ({ XDG_CONFIG_HOME: home, BRIGADE: app.baseUrl, ...(key === undefined ? {} : { BRIGADE_KEY: key }) })
  const run = (words: readonly string[], key?: string): Promise<Ran> => runHere(words, { BRIGADE_KEY: undefined, ...envOf(key) })
  async function ran(words: readonly string[], key?: string): Promise<string> {
    const { code, out, err } = await run(words, key)
    expect([code, err], words.join(' ')).toEqual([0, ''])
    return out
  }
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of the API.
  const json = async (...words: string[]): Promise<any> => JSON.parse(await ran([...words, '--json']))
  const whoami = async (key: string): Promise<number> => (await app.call('GET', '/v1/me/whoami', undefined, { token: key })).status
  const chat = (body: object = {}, token = app.key) =>
    app.call('POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'a secret sentence' }], ...body }, { token })

  test('keys: create and rotate print the secret once, list never shows it, delete ends the key', async () => {
    const made = await run(['keys', 'create', 'ci', '--scope', 'inference', '--budget-inr', '50', '--expires-days', '30'])
    expect([made.code, made.err]).toEqual([0, expect.stringMatching(/^The key "ci" \(id \d+\)\. Its secret is shown once:\n$/)])
    const secret = made.out.trim()
    expect([secret.startsWith('br-'), await whoami(secret)]).toEqual([true, 200])
    const list = await ran(['keys', 'list'])
    expect(list).toMatch(/^ *\d+ +ci +br-\S+ +inference +active +50\.00 +0\.00 +\S+ +20\d\d-/m)
    expect(list).not.toContain(secret)
    expect(await run(['keys', 'create', 'ci'])).toMatchObject({ code: 1, err: expect.stringContaining('duplicate_key_name') })
    const rotated = await json('keys', 'rotate', 'ci', '--overlap-days', '0')
    expect([await whoami(secret), await whoami(rotated.key)]).toEqual([401, 200])
    expect(await run(['keys', 'delete', 'ci'])).toMatchObject({ code: 2, err: expect.stringContaining('add --yes') })
    expect(await ran(['keys', 'delete', 'ci', '--yes'])).toBe(`ended ci (id ${rotated.id})\n`)
    expect(await whoami(rotated.key)).toBe(401)
    expect(await run(['keys', 'delete', 'ci', '--yes'])).toMatchObject({ code: 4, err: expect.stringContaining('brigade keys list') })
    const other = await app.otherOrg('Others')
    expect((await run(['keys', 'rotate', String(other.keyId)])).code).toBe(4)
  })

  test('providers: a key is tried at the provider before it is saved, is never shown, and can be tested and removed', async () => {
    const file = join(home, 'provider.key')
    writeFileSync(file, 'sk-own-provider-key-0123456789\n')
    expect(await ran(['providers', 'list'])).toMatch(/^sandbox +\S.* +serves on the key of the operator/m)
    const saved = await json('providers', 'add', 'sandbox', '--from', file, '--label', 'mine', '--first')
    expect(saved).toMatchObject({ provider: 'sandbox', label: 'mine', always_use: true })
    const list = await ran(['providers', 'list'])
    expect(list).toMatch(/^sandbox .*used first, \d+ models$/m)
    expect(list).not.toContain('sk-own-provider-key-0123456789')
    expect(await ran(['providers', 'test', 'sandbox'])).toBe('sandbox: the provider accepts the key\n')
    expect(await ran(['providers', 'remove', 'sandbox', '--yes'])).toBe('removed the key at sandbox\n')
    expect((await run(['providers', 'test', 'sandbox'])).code).toBe(4)
    expect((await run(['providers', 'add', 'no-such-provider', '--from', file])).code).toBe(4)
    expect(await run(['providers', 'add', 'sandbox'])).toMatchObject({ code: 2, err: expect.stringContaining('add --from <file>') })
  })

  test('logs shows what is kept of the last calls and no text of them; an agent token may read it, an API key may not', async () => {
    const { token } = await app.newAgent('logged')
    const ok = await chat({}, token)
    await chat({ model: 'no-such-model-of-ours' })
    const request = ok.headers.get('x-request-id') ?? ''
    await until(async () => (await ran(['logs'])).includes(request), 'the call is in the list')
    const line = (await ran(['logs'])).split('\n').find(text => text.includes(request)) ?? ''
    expect(line).toMatch(/^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +logged +sandbox-chat +ok +\d+ +\d\.\d+ +\S+$/)
    const [call] = (await ran(['logs', '--json', '--request', request]))
      .trim()
      .split('\n')
      .map(text => JSON.parse(text))
    expect(call).toMatchObject({ request_id: request, agent_name: 'logged', outcome: 'ok' })
    expect(await ran(['logs', '-n', '200', '--json'])).not.toContain('secret sentence')
    expect(await ran(['logs', '--request', request], token)).toContain(request)
    const kept = await runHere(['logs'], { XDG_CONFIG_HOME: join(home, 'nobody'), BRIGADE: app.baseUrl, BRIGADE_KEY: app.key })
    expect([kept.code, kept.err]).toEqual([3, expect.stringContaining('an API key is not enough')])
  })

  test('FIRST-09 logs --follow prints each later call once, survives a gateway that is slow to list it, and ends with Ctrl-C', async () => {
    const { out, ended, child } = startProgram(process.execPath, [brigade, 'logs', '--follow', '-n', '1'], { env: envOf(), cwd: home })
    await until(() => out().includes('REQUEST'), 'the head is printed')
    const ids = [(await chat()).headers.get('x-request-id') ?? '?', (await chat()).headers.get('x-request-id') ?? '?']
    await until(() => ids.every(id => out().includes(id)), 'both calls are printed')
    child.kill('SIGINT')
    expect(await ended).toBe(0)
    for (const id of ids) expect(out().split(id)).toHaveLength(2)
  })

  test('only this user can read the session, and logout ends it at the gateway', async () => {
    expect(statSync(session()).mode & 0o777).toBe(0o600)
    const sessions = async (): Promise<number> => (await app.call('GET', '/me/sessions', undefined, { cookie: await app.signIn() })).json.sessions.length
    const before = await sessions()
    expect(await ran(['logout'])).toContain(`The session at ${app.baseUrl} is over.`)
    // Each count signs in once more.
    expect(await sessions()).toBe(before)
    expect(existsSync(session())).toBe(false)
    expect((await run(['keys', 'list'])).code).toBe(3)
  })
})
