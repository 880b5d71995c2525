/** The commands as separate processes, on the embedded database of a running gateway. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestBrowser } from '../harness/browser.ts'
import { pressThrough } from '../harness/cli-login.ts'
import { type GatewayProcess, startProcess } from '../harness/process.ts'
import { hasPseudoTerminal } from '../harness/pseudo-terminal.ts'
import { startProgram } from '../harness/started-program.ts'
import { startInTerminal } from '../harness/terminal-dialog.ts'
import { until } from '../harness/until.ts'
import { blockWith, checkout } from './page-lines.ts'
import { brigade } from './stdio-clients.ts'

interface Ran {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

describe('brigade commands as processes', () => {
  let gateway: GatewayProcess
  beforeAll(async () => {
    gateway = await startProcess({ SANDBOX: 'on' })
  }, 60_000)
  afterAll(async () => {
    await gateway.kill()
    rmSync(gateway.dataDir, { recursive: true, force: true })
  })

  /** Starts the command. `output` returns what it has printed so far. */
  function type(...words: string[]): { readonly output: () => string; readonly ended: Promise<Ran> } {
    const env = { HOME: gateway.dataDir, DATA_DIR: gateway.dataDir, LOG_LEVEL: 'error' }
    const { out, err, ended } = startProgram(process.execPath, [brigade, ...words], { env })
    return { output: out, ended: ended.then(code => ({ code, out: out(), err: err() })) }
  }
  // biome-ignore lint/suspicious/noExplicitAny: the commands print arbitrary objects.
  const json = async (...words: string[]): Promise<any> => JSON.parse((await type(...words, '--json').ended).out)
  const whoami = async (key: string) => (await fetch(`${gateway.baseUrl}/v1/me/whoami`, { headers: { authorization: `Bearer ${key}` } })).json()

  test('TEST-06 admin create, admin key --scope inference and admin sign-in give the first credentials', async () => {
    const created = await json('admin', 'create', '--email', 'ops@team.test', '--org', 'Team')
    expect(await whoami(created.key)).toMatchObject({ org: { name: 'Team' }, role: 'owner', scope: 'full' })
    const { key } = await json('admin', 'key', '--org', String(created.org_id), '--scope', 'inference', '--name', 'ci')
    expect(await whoami(key)).toMatchObject({ org: { name: 'Team' }, scope: 'inference' })
    const { url } = await json('admin', 'sign-in', '--email', 'ops@team.test')
    expect(url.startsWith(`${gateway.baseUrl}/auth/link?token=`)).toBe(true)
    const browser = new TestBrowser()
    const page = await browser.open(url)
    expect(page.text).toContain('ops@team.test')
    const token = /name="token" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    expect((await browser.open(`${gateway.baseUrl}/auth/link`, { form: { token } })).status).toBe(302)
    expect((await browser.open(`${gateway.baseUrl}/me`)).json).toMatchObject({ email: 'ops@team.test', role: 'owner' })
  })

  test('without --json, the link is on its own line; for an unknown address, the command exits with 1 and says what to do', async () => {
    const { code, out } = await type('admin', 'sign-in', '--email', 'owner@localhost').ended
    expect([code, /^url +http:\/\/\S+$/m.test(out)]).toEqual([0, true])
    const unknown = await type('admin', 'sign-in', '--email', 'nobody@x.test').ended
    expect([unknown.code, unknown.out]).toEqual([1, ''])
    expect(unknown.err).toContain('brigade admin create --email nobody@x.test')
  })

  test('FIRST-09 on the computer of a first start, open, status, logs, top, chat, keys, providers and completion work with what the start has printed', async () => {
    const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
    const home = mkdtempSync(join(gateway.dataDir, 'first-'))
    const env = { HOME: home, DATA_DIR: gateway.dataDir, LOG_LEVEL: 'error', BRIGADE: gateway.baseUrl, BRIGADE_KEY: key }
    const run = async (words: readonly string[], stdin?: string): Promise<string> => {
      const { out, err, ended } = startProgram(process.execPath, [brigade, ...words], { env, cwd: home, ...(stdin === undefined ? {} : { stdin }) })
      expect([await ended, out() + err()], words.join(' ')).toEqual([0, expect.any(String)])
      return out()
    }
    expect(await run(['chat', 'Hello'])).toContain('simulated reply')
    expect(await run(['status'])).toMatch(/ready, database ok\nyou {6}key "first key" of Home, owner/)
    await until(async () => (await run(['logs'])).includes('sandbox-chat'), 'the call is in the list')
    expect(await run(['top'])).toContain('first-agent')
    const secret = (await run(['keys', 'create', 'ci'])).trim()
    expect(await whoami(secret)).toMatchObject({ key: { name: 'ci' } })
    expect(await run(['keys', 'list'])).toMatch(/ ci +br-/)
    expect(await whoami((await run(['keys', 'rotate', 'ci', '--overlap-days', '0'])).trim())).toMatchObject({ key: { name: 'ci' } })
    expect(await whoami(secret)).toMatchObject({ error: { code: expect.any(String) } })
    expect(await run(['keys', 'delete', 'ci', '--yes'])).toMatch(/^ended ci/)
    expect(await run(['providers', 'add', 'sandbox', '--from', '-'], 'sk-a-key-of-the-person-0123456789')).toContain('saved the key')
    expect(await run(['providers', 'test', 'sandbox'])).toContain('accepts the key')
    expect(await run(['providers', 'list'])).toContain('models')
    expect(await run(['providers', 'remove', 'sandbox', '--yes'])).toContain('removed')
    for (const shell of ['bash', 'zsh', 'fish']) expect(await run(['completion', shell])).toContain('providers')
    const link = /^(http\S+\/auth\/link\?token=\S+)$/m.exec(await run(['open']))?.[1] ?? ''
    const browser = new TestBrowser()
    expect((await browser.open(link)).text).toContain('owner@localhost')
  }, 120_000)

  test.skipIf(!hasPseudoTerminal)(
    'open starts the opener of the platform, and prints the address where none works (needs the command script)',
    async () => {
      const home = mkdtempSync(join(gateway.dataDir, 'open-'))
      const opener = join(home, process.platform === 'darwin' ? 'open' : 'xdg-open')
      const env = { HOME: home, DATA_DIR: gateway.dataDir, LOG_LEVEL: 'error', BRIGADE: gateway.baseUrl, PATH: `${home}:/usr/bin:/bin` }
      const opened = async (script: string): Promise<string> => {
        writeFileSync(opener, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
        const { ended, shown } = startInTerminal([process.execPath, brigade, 'open'], { env })
        expect(await ended, shown()).toBe(0)
        return shown()
      }
      const argument = join(home, 'argument')
      const shown = await opened(`echo "$@" > '${argument}'`)
      // Every user of a computer sees the arguments of a process, so the link is in a page that only its owner can read.
      const page = readFileSync(argument, 'utf8').trim()
      expect(page).toBe(join(home, '.config', 'brigade', 'brigade-open.html'))
      expect(statSync(page).mode & 0o777).toBe(0o600)
      const link = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(readFileSync(page, 'utf8'))?.[1] ?? ''
      expect(link).toMatch(new RegExp(`^${gateway.baseUrl}/auth/link\\?token=[^<>&"]+$`))
      expect((await new TestBrowser().open(link)).text).toContain('owner@localhost')
      expect([shown.includes(`Opened ${gateway.baseUrl}/console in the browser.`), shown.includes('token=')]).toEqual([true, false])
      expect(await opened('exit 3')).toContain(`${gateway.baseUrl}/auth/link?token=`)
      // A browser from a snap cannot read hidden folders.
      const ofSnap = join(home, 'snap', 'firefox', 'common')
      mkdirSync(ofSnap, { recursive: true })
      writeFileSync(join(home, 'xdg-settings'), '#!/bin/sh\necho firefox_firefox.desktop\n', { mode: 0o755 })
      await opened(`echo "$@" > '${argument}'`)
      if (process.platform === 'linux') expect(readFileSync(argument, 'utf8').trim()).toBe(join(ofSnap, 'brigade-open.html'))
    },
    60_000,
  )

  test('brigade login waits for the browser, stores the key and exits with 0', async () => {
    const browser = new TestBrowser()
    const { url } = await json('admin', 'sign-in', '--email', 'owner@localhost')
    await browser.open(`${gateway.baseUrl}/auth/link`, { form: { token: new URL(url).searchParams.get('token') ?? '' } })
    const login = type('login', '--no-browser', '--base-url', gateway.baseUrl)
    const address = (): string | undefined => /http:\/\/\S+\/cli\/login\?\S+/.exec(login.output())?.[0]
    await until(() => address() !== undefined, 'the address is printed')
    const { location } = await pressThrough(browser, address() ?? '')
    expect((await browser.follow(location ?? '')).text).toContain('You can close this window')
    const { code, out, err } = await login.ended
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('as owner')
    const kept = JSON.parse(readFileSync(join(gateway.dataDir, '.config', 'brigade', 'credentials.json'), 'utf8'))
    expect(kept.base_url).toBe(gateway.baseUrl)
    expect(await whoami(kept.key)).toMatchObject({ role: 'owner', scope: 'full' })
  })

  test('brigade login exits with 1 and one line when no gateway answers at the address', async () => {
    const { code, out, err } = await type('login', '--base-url', 'http://127.0.0.1:9').ended
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe('brigade: there is no gateway at http://127.0.0.1:9. Give its address with --base-url.\n')
  })

  test('the commands of the page about clients write memory over MCP with only Node, in an empty home folder, on the gateway of a first start', async () => {
    const key = /API key +(br-\S+)/.exec(gateway.output())?.[1] ?? ''
    const lines = blockWith('| npx brigade mcp')
    // Together with npm start and the export of the key, these are all the commands from a fresh clone to the first write of memory.
    expect(lines.length).toBeLessThanOrEqual(2)
    const home = mkdtempSync(join(gateway.dataDir, 'clean-'))
    const { ended, out, err } = startProgram('sh', ['-e', '-c', lines.join('\n')], {
      cwd: checkout,
      env: { HOME: home, BRIGADE: gateway.baseUrl, BRIGADE_KEY: key },
    })
    // npm may print warnings about the settings of this computer.
    const code = await ended
    expect([code, code === 0 ? '' : err()]).toEqual([0, ''])
    const [answer = '', ...content] = out().split('\n')
    expect(JSON.parse(answer)).toMatchObject({ id: 1, result: { structuredContent: { key: 'agents/me/pipe.md' } } })
    expect(content.join('\n')).toContain('MCP works.')
  }, 60_000)
})
