/** What a person sees who starts a gateway at a terminal, and what a program gets instead. The programs are those of dist. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { call } from '../harness/fleet.ts'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { hasPseudoTerminal, type InTerminal, inTerminal, noPseudoTerminal } from '../harness/pseudo-terminal.ts'
import { startProgram } from '../harness/started-program.ts'
import { until } from '../harness/until.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const main = [process.execPath, '--liftoff-only', join(dist, 'main.js')]
const styleStart = '\u001b['
const folders: string[] = []
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-terminal-'))
  folders.push(folder)
  return folder
}
const quiet = { PORT: '0', LOCAL_SERVERS: 'off', PRICE_FEED_URL: 'off' }
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Opens a sign-in link as a browser does: reads its page, and presses the button. Returns the statuses and where the browser goes. */
async function follow(link: string): Promise<{ page: number; button: number; to: string | null; cookie: string }> {
  const url = new URL(link)
  const page = await fetch(link, { headers: { accept: 'text/html' } })
  const button = await fetch(`${url.origin}/auth/link`, {
    method: 'POST',
    redirect: 'manual',
    headers: { accept: 'text/html', origin: url.origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: `token=${url.searchParams.get('token')}`,
  })
  return { page: page.status, button: button.status, to: button.headers.get('location'), cookie: button.headers.get('set-cookie') ?? '' }
}

describe.skipIf(!hasPseudoTerminal)(`a start in a terminal${hasPseudoTerminal ? '' : `, on ${noPseudoTerminal}`}`, () => {
  const folder = newFolder()
  let terminal: InTerminal
  const shown = (pattern: RegExp): string => pattern.exec(terminal.lines().join('\n'))?.[1] ?? ''
  const start = async (env: Readonly<Record<string, string>> = {}): Promise<void> => {
    terminal = inTerminal(main, { cwd: folder, env: { ...quiet, HOME: folder, ...env } })
    await terminal.shows('Ctrl-C')
  }
  /** The lines of the start: everything after the lines about work that is done. */
  const bannerLines = (): string[] => {
    const lines = terminal.lines()
    const from = lines.findIndex(line => line.includes('Brigade 0.'))
    return lines.slice(from - 1, lines.findIndex(line => line.includes('Ctrl-C')) + 1)
  }
  let baseUrl = ''
  let key = ''
  let link = ''
  beforeAll(async () => {
    await start()
    baseUrl = shown(/Brigade \S+ +(http:\/\/\S+)/)
    key = shown(/Your API key +(\S+)/)
    link = shown(/Open the console +(\S+)/)
  })

  test('the first start shows at most 12 lines: address, sign-in link, key once, providers, how to connect and how to stop, after one line about the database', async () => {
    const lines = bannerLines()
    expect(lines.length).toBeLessThanOrEqual(12)
    const text = lines.join('\n')
    expect(baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(text).toMatch(/ready in [\d.]+ (ms|s)/)
    expect(text).toContain('works once, within 15 minutes')
    expect(text.split(key)).toHaveLength(2)
    expect(text).toMatch(/Providers +sandbox/)
    expect(text).toMatch(/Connect a client +npx brigade login .*npx brigade connect/)
    expect(text).toMatch(/Stop +Ctrl-C/)
    const before = terminal
      .lines()
      .slice(0, terminal.lines().indexOf(lines[0] as string))
      .filter(line => line.trim() !== '')
    expect(before.at(-1)).toMatch(/^ {2}✓ Database ready \(\d+ migrations, [\d.]+ (ms|s)\)$/)
    expect(terminal.raw()).toContain('… Loading Brigade')
    expect(terminal.raw()).not.toMatch(/"level"|migration_applied|SMTP_URL|eyJ/)
    expect(terminal.raw()).toContain(`${styleStart}1mBrigade`)
    expect((await call({ baseUrl }, key, 'GET', '/v1/me/whoami')).status).toBe(200)

    const signedIn = await follow(link)
    expect(signedIn).toMatchObject({ page: 200, button: 302, to: expect.stringContaining('/console'), cookie: expect.stringContaining('br_session=') })
    const me = await fetch(`${baseUrl}/me`, { headers: { cookie: signedIn.cookie.split(';')[0] ?? '' } })
    expect(await me.json()).toMatchObject({ email: 'owner@localhost', role: 'owner' })
    expect(await follow(link)).toMatchObject({ page: 400, button: 400, cookie: '' })
  })

  test('each request gets one line with status, model, name of the caller and duration, and without content, keys or paths that the table does not have', async () => {
    const messages = [{ role: 'user', content: 'the-secret-prompt' }]
    await call({ baseUrl }, key, 'POST', '/v1/chat/completions', { model: 'sandbox-chat', messages })
    await terminal.shows('sandbox-chat by sandbox')
    const { json: minted } = await call({ baseUrl }, key, 'POST', '/v1/me/agents/1/token', {})
    await call({ baseUrl }, String(minted.access_token), 'POST', '/v1/embeddings', { model: 'sandbox-embed', input: 'the-secret-prompt' })
    await call({ baseUrl }, key, 'POST', '/v1/chat/completions', { model: 'the-secret-model', messages })
    await call({ baseUrl }, key, 'POST', '/chat/completions?key=the-secret-query', {})
    await call({ baseUrl }, key, 'GET', '/v1/the-secret-path/models')
    await fetch(`${baseUrl}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'memory_write', arguments: { key: 'agents/me/the-secret-name.md', content: 'the-secret-text' } },
      }),
    }).then(reply => reply.text())
    await fetch(`${baseUrl}/readyz`)
    await fetch(`${baseUrl}/console`, { headers: { accept: 'text/html' } })
    await fetch(`${baseUrl}/v1/me/whoami`)
    await terminal.shows('401  GET /v1/me/whoami')
    const lines = terminal.lines().filter(line => /^\d\d:\d\d:\d\d {2}/.test(line))
    const one = (pattern: RegExp): void =>
      expect(
        lines.filter(line => pattern.test(line)),
        String(pattern),
      ).toHaveLength(1)
    one(/ {2}200 {2}POST \/v1\/chat\/completions {2}sandbox-chat by sandbox {2}key first key {2}[\d.]+ m?s$/)
    one(/ {2}200 {2}POST \/v1\/embeddings {2}sandbox-embed by sandbox {2}agent first-agent {2}[\d.]+ m?s$/)
    one(/ {2}404 {2}POST \/v1\/chat\/completions {2}model_not_found {2}key first key /)
    one(/ {2}404 {2}POST \/chat\/completions {2}not_found /)
    one(/ {2}404 {2}GET \/v1\/…\/models {2}not_found /)
    one(/ {2}200 {2}POST \/mcp {2}memory_write {2}key first key /)
    expect(terminal.raw()).not.toMatch(/the-secret|readyz|GET \/console/)
    expect(lines.join('\n')).not.toContain(key)
  })

  test('Ctrl-C ends the gateway, and a later start has no key, a new link, and no styles with NO_COLOR', async () => {
    expect(await terminal.interrupt()).toBe(0)
    await start({ NO_COLOR: '1' })
    const lines = bannerLines()
    expect(lines.length).toBeLessThanOrEqual(12)
    expect(lines.join('\n')).not.toMatch(/API key|br-/)
    expect(terminal.raw()).not.toMatch(/migrations,/)
    const next = shown(/Open the console +(\S+)/)
    expect(next).toMatch(/token=/)
    expect(next).not.toBe(link)
    expect(await follow(next)).toMatchObject({ button: 302 })
    expect(terminal.raw().replaceAll('\r\u001b[2K', '')).not.toContain('\u001b')
    expect(await terminal.interrupt()).toBe(0)
  })

  test('a terminal that cannot erase a line gets plain lines about the work, and FORCE_COLOR gives it styles', async () => {
    await start({ TERM: 'dumb' })
    expect(terminal.raw()).not.toContain('\u001b')
    expect(terminal.lines()).toContain('  Opening the database ...')
    expect(await terminal.interrupt()).toBe(0)
    await start({ TERM: 'dumb', FORCE_COLOR: '1', LOG_LEVEL: 'warn' })
    expect(terminal.raw()).toContain(`${styleStart}1mBrigade`)
    expect(terminal.raw()).not.toContain('\u001b[2K')
    await call({ baseUrl: shown(/Brigade \S+ +(http:\/\/\S+)/) }, key, 'GET', '/v1/models')
    expect(await terminal.interrupt()).toBe(0)
    expect(terminal.raw()).not.toContain('GET /v1/models')
  })

  test('a command that takes long shows what it does, and a summary ends the doctor', async () => {
    const env = { HOME: folder, DATA_DIR: join(folder, '.brigade'), LOCAL_SERVERS: 'off' }
    const cli = [process.execPath, '--liftoff-only', join(dist, 'cli', 'brigade.js')]
    const backup = inTerminal([...cli, 'backup', join(folder, 'copy')], { cwd: folder, env })
    expect(await backup.ended).toBe(0)
    expect(backup.raw()).toContain('… Copying the installation to')
    expect(backup.lines().join('\n')).toMatch(/^backed up to /m)
    const doctor = inTerminal([...cli, 'doctor'], { cwd: folder, env })
    expect(await doctor.ended).toBe(0)
    expect(doctor.raw()).toContain(`${styleStart}32mok`)
    expect(
      doctor
        .lines()
        .filter(line => line !== '')
        .at(-1),
    ).toMatch(/^\d+ ok(, \d+ warnings?)?$/)
    expect(doctor.lines()).toContain('ok      sandbox: is on, because no provider key that is set serves a model')
  })
})

describe('a start without a terminal', () => {
  let gateway: GatewayProcess
  const folder = newFolder()
  afterAll(async () => await gateway?.kill())

  test('a pipe gets JSON lines for the log, no progress, no styles and no line for a request, and the text that programs read', async () => {
    const env = { SANDBOX: '', LOG_LEVEL: 'info', FORCE_COLOR: '1', DATA_DIR: join(folder, 'data') }
    gateway = await startProcess(env, folder)
    await until(() => gateway.output().includes('npx brigade demo'), 'the end of the text')
    const key = /API key +(\S+)/.exec(gateway.output())?.[1] ?? ''
    expect((await call(gateway, key, 'GET', '/v1/me/whoami')).status).toBe(200)
    expect(await gateway.terminate()).toBe(0)
    const json = gateway
      .output()
      .split('\n')
      .filter(line => line.startsWith('{"level"'))
    expect(json.filter(line => JSON.parse(line).msg === 'migration_applied').length).toBeGreaterThan(30)
    expect(gateway.output()).not.toContain('\u001b')
    expect(gateway.output()).not.toMatch(/…|auth\/link|whoami|Database ready|mail is not sent/)
  })

  test('a backup and the doctor print plain lines', async () => {
    const env = { HOME: folder, DATA_DIR: join(folder, 'data'), LOCAL_SERVERS: 'off', FORCE_COLOR: '1' }
    const run = async (...words: string[]) => {
      const program = startProgram(process.execPath, [join(dist, 'cli', 'brigade.js'), ...words], { cwd: folder, env })
      return { code: await program.ended, out: program.out(), err: program.err() }
    }
    expect(await run('backup', join(folder, 'copy'))).toEqual({ code: 0, out: expect.stringMatching(/^backed up to /), err: '' })
    const doctor = await run('doctor')
    expect([doctor.code, doctor.err]).toEqual([0, ''])
    expect(doctor.out).not.toContain('\u001b')
    expect(doctor.out.trimEnd().split('\n').at(-1)).toMatch(/^\d+ ok(, \d+ warnings?)?$/)
    expect(JSON.parse((await run('doctor', '--json')).out)).toContainEqual(expect.objectContaining({ what: 'sandbox', state: 'ok' }))
  })
})
