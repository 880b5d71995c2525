import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { login } from '../../src/cli/account/login.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { userConfigFolder } from '../../src/platform/config.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { TestBrowser } from '../harness/browser.ts'
import { pressThrough } from '../harness/cli-login.ts'
import { type GoogleServer, startGoogle } from '../harness/google-server.ts'

describe('brigade login', () => {
  let google: GoogleServer
  let app: TestApp
  let home: string
  let printed: string[]
  beforeAll(async () => {
    google = await startGoogle()
    app = await startApp({ env: google.env })
  })
  afterAll(async () => {
    await app.stop()
    await google.stop()
  })
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'brigade-home-'))
    printed = []
    return () => rmSync(home, { recursive: true, force: true })
  })

  /** Signs in, presses the button of the page, and follows the redirect to the command line. Returns the page that it shows. */
  const pressed = async (url: string) => {
    const browser = new TestBrowser()
    return browser.follow((await pressThrough(browser, url)).location ?? '')
  }
  const folder = (): string => join(home, 'brigade')
  const run = (openBrowser: ((url: string) => void) | null, more: { baseUrl?: string; clock?: Clock } = {}) =>
    login({ baseUrl: app.baseUrl, folder: folder(), clock: systemClock, ids: systemIds, openBrowser, print: line => printed.push(line), ...more })

  test('HARD-15 a person who is not signed in yet signs in and presses the button, and the key is stored so that only this user can read it', async () => {
    const pages: Promise<{ status: number; text: string }>[] = []
    await run(url => pages.push(pressed(url)), { baseUrl: `${app.baseUrl}/` })
    const file = join(folder(), 'credentials.json')
    const { base_url, key } = JSON.parse(readFileSync(file, 'utf8'))
    expect(base_url).toBe(app.baseUrl)
    expect((await app.call('GET', '/v1/me/whoami', undefined, { token: key })).json).toMatchObject({ scope: 'full', role: 'owner', org: { name: 'Asha Rao' } })
    expect([statSync(file).mode & 0o777, statSync(folder()).mode & 0o777]).toEqual([0o600, 0o700])
    const text = printed.join('\n')
    expect(text).toContain(`${app.baseUrl}/cli/login?port=`)
    expect(text).toMatch(/Signed in to Asha Rao as owner, with the key "CLI \d{4}-\d{2}-\d{2} .*which ends on \d{4}-\d{2}-\d{2}/)
    expect(text).toContain(file)
    expect(text).not.toContain(key)
    const [page] = await Promise.all(pages)
    expect(page?.status).toBe(200)
    expect(page?.text).toContain('You can close this window')
    expect(page?.text).not.toContain(key)
  })

  test('a second login replaces the key of the first', async () => {
    const keys: string[] = []
    for (let round = 0; round < 2; round++) {
      await run(url => void pressed(url))
      keys.push(JSON.parse(readFileSync(join(folder(), 'credentials.json'), 'utf8')).key)
    }
    expect(keys[0]).not.toBe(keys[1])
  })

  test('a code with another state, without a state, or at another path is refused', async () => {
    const refused: number[] = []
    await run(async url => {
      const { searchParams } = new URL(url)
      const at = `http://127.0.0.1:${searchParams.get('port')}`
      const state = searchParams.get('state') ?? ''
      for (const path of [
        '/callback?code=planted-by-a-stranger&state=wrong-state',
        '/callback?code=planted-by-a-stranger',
        `/callback?state=${state}`,
        `/callback?code=x&state=${state}`,
        `/other?code=planted-by-a-stranger&state=${state}`,
        '/',
        '//',
      ])
        refused.push((await fetch(at + path)).status)
      refused.push((await fetch(`${at}/callback?code=planted-by-a-stranger&state=${state}`, { method: 'POST' })).status)
      await pressed(url)
    })
    expect(refused).toEqual([400, 400, 400, 400, 400, 400, 400, 400])
    expect(readFileSync(join(folder(), 'credentials.json'), 'utf8')).not.toContain('planted')
  })

  test('a code that the gateway does not know gives no key', async () => {
    await expect(
      run(url => {
        const { searchParams } = new URL(url)
        void fetch(`http://127.0.0.1:${searchParams.get('port')}/callback?code=not-a-code-of-ours-at-all&state=${searchParams.get('state')}`)
      }),
    ).rejects.toThrow('Run brigade login again')
    expect(existsSync(join(folder(), 'credentials.json'))).toBe(false)
  })

  test('when nobody comes within five minutes, the command says so and stops listening', async () => {
    let waitedMs = 0
    let late = (): void => {}
    const clock: Clock = {
      ...systemClock,
      after(ms, fn) {
        waitedMs = ms
        late = fn
        return () => {}
      },
    }
    let port = ''
    await expect(
      run(
        url => {
          port = new URL(url).searchParams.get('port') ?? ''
          queueMicrotask(() => late())
        },
        { clock },
      ),
    ).rejects.toThrow('nobody signed in within 5 minutes')
    expect(waitedMs).toBe(300_000)
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  })

  test('when no gateway answers at the address, the command says so before it opens a browser', async () => {
    const other = createServer((_request, response) => response.end('{}'))
    await new Promise<void>(done => other.listen(0, '127.0.0.1', done))
    const port = (other.address() as AddressInfo).port
    const opened: string[] = []
    const open = (url: string): void => void opened.push(url)
    await expect(run(open, { baseUrl: `http://127.0.0.1:${port}` })).rejects.toThrow('is no gateway')
    await new Promise(done => other.close(done))
    await expect(run(open, { baseUrl: `http://127.0.0.1:${port}` })).rejects.toThrow('--base-url')
    for (const baseUrl of ['gateway.example', 'ftp://x', '']) await expect(run(open, { baseUrl })).rejects.toThrow('http or https URL')
    expect(opened).toEqual([])
  })

  test('the folder is in XDG_CONFIG_HOME when that is an absolute path, and otherwise in the home folder', () => {
    expect(userConfigFolder({ XDG_CONFIG_HOME: '/tmp/config' })).toBe('/tmp/config/brigade')
    for (const given of [undefined, '', 'relative/path']) expect(userConfigFolder({ XDG_CONFIG_HOME: given })).toMatch(/\/\.config\/brigade$/)
  })
})
