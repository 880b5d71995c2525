import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientNames } from '../../src/connect/connect-plan.ts'
import { brigade } from '../cli/stdio-clients.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { startProgram } from '../harness/started-program.ts'

let app: TestApp
let cookie: string
let home: string
beforeAll(async () => {
  app = await startApp()
  cookie = await app.signIn()
  home = mkdtempSync(join(tmpdir(), 'brigade-guide-'))
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
  await app?.stop()
})

const guide = (client: string, query: Record<string, string> = {}) =>
  app.call('GET', `/me/connect/${client}?${new URLSearchParams(query)}`, undefined, { cookie })

/** Runs `brigade connect` with a home of its own, which is also the folder of the project. Returns what it printed with --json. */
async function typed(folder: string, words: readonly string[]): Promise<{ files: { path: string; text?: string }[]; commands: string[]; notes: string[] }> {
  const env = { HOME: folder, PATH: process.env['PATH'] ?? '', BRIGADE_KEY: app.key }
  const { ended, out, err } = startProgram(process.execPath, [brigade, 'connect', ...words, '--json'], { env, cwd: folder })
  expect([await ended, err()]).toEqual([0, ''])
  return JSON.parse(out())
}

/** Text of the command line in which the program of this machine and its folders are what the gateway says for any machine. */
const anywhere = (text: string, folder: string): string =>
  text
    .replaceAll(`${process.execPath} ${brigade}`, 'brigade')
    .replace(new RegExp(`"${process.execPath}",\\s*"${brigade}",?\\s*`, 'g'), '"brigade",')
    .replace(new RegExp(`(command"?\\s*[:=]\\s*)"${process.execPath}"`, 'g'), '$1"brigade"')
    .replace(new RegExp(`"${brigade}",\\s*`, 'g'), '')
    .replaceAll(folder, '~')
    .replaceAll(/\s+/g, '')

describe.each(clientNames)('CAPI-12 GET /me/connect/{client} says what brigade connect writes: %s', { timeout: 120_000 }, client => {
  const variants: readonly (readonly [title: string, query: Record<string, string>, flags: string[]])[] = [
    ['with a key', {}, []],
    ['as an agent', { agent: 'rev iewer' }, ['--agent', 'rev iewer']],
    ['in a project', { scope: 'project', models: 'no', name: 'gate' }, ['--project', '--tools', '--name', 'gate']],
    [
      'as a bridge with some tools',
      { scope: 'user', bridge: 'true', toolsets: 'core,memory', model: 'gpt-5' },
      ['--user', '--bridge', '--toolsets', 'core,memory', '--model', 'gpt-5'],
    ],
  ]
  test.each(variants)('%s', async (_, query, flags) => {
    const folder = mkdtempSync(join(home, 'of-'))
    const { status, json } = await guide(client, query)
    expect(status).toBe(200)
    const printed = await typed(folder, [client, '--base-url', app.baseUrl, ...flags])
    expect(json.files.map(({ text }: { text: string }) => anywhere(text, folder))).toEqual(printed.files.map(({ text = '' }) => anywhere(text, folder)))
    expect(json.commands.map((line: string) => anywhere(line, folder))).toEqual(printed.commands.map(line => anywhere(line, folder)))
    const isProject = (query['scope'] ?? (client === 'vscode' ? 'project' : 'user')) === 'project'
    expect(json.files.map(({ path }: { path: string }) => (isProject ? join('~', path) : path))).toEqual(
      printed.files.map(({ path }) => path.replace(folder, '~')),
    )
    const shared = [...json.notes].filter((note: string) => printed.notes.includes(note))
    expect(shared.length).toBeGreaterThanOrEqual(printed.notes.length - 1)
    // The command line that the gateway names writes the same files.
    const words = (json.command as string)
      .replaceAll("'rev iewer'", 'rev+iewer')
      .split(' ')
      .map(word => word.replace('+', ' '))
    expect(words.slice(0, 3)).toEqual(['npx', 'brigade', 'connect'])
    const written = await typed(folder, words.slice(3))
    for (const [index, { path }] of written.files.entries()) expect(anywhere(readFileSync(path, 'utf8'), folder)).toBe(anywhere(json.files[index].text, folder))
  })
})

describe('the guide', () => {
  test('contains no key, and names the agent and the address of the gateway', async () => {
    const { json } = await guide('codex', { agent: 'reviewer' })
    expect(json.command).toBe(`npx brigade connect codex --base-url ${app.baseUrl} --agent reviewer --write`)
    expect(JSON.stringify(json)).not.toMatch(/br-[A-Za-z0-9]{8}/)
    expect([json.needs_key_in_environment, (await guide('codex')).json.needs_key_in_environment]).toEqual([false, true])
  })

  test('follows the system of the machine', async () => {
    const path = async (client: string, query: Record<string, string>) => (await guide(client, query)).json.files[0].path
    expect(await path('codex', { platform: 'win32' })).toBe('%USERPROFILE%\\.codex\\config.toml')
    expect(await path('vscode', { scope: 'user', platform: 'darwin' })).toBe('~/Library/Application Support/Code/User/mcp.json')
    expect(await path('vscode', { scope: 'user', platform: 'win32' })).toBe('%APPDATA%\\Code\\User\\mcp.json')
    expect((await guide('codex', { agent: "o'neil", platform: 'linux' })).json.command).toContain(`--agent 'o'\\''neil'`)
    expect((await guide('codex', { agent: 'a b', platform: 'win32' })).json.command).toContain('--agent "a b"')
  })

  test.each([
    ['emacs', {}, 'client'],
    ['cursor', { models: 'yes' }, 'Leave --models out'],
    ['vscode', { trust_tools: 'true' }, '--trust-tools is for claude-code and codex'],
    ['codex', { agent: 'a\nb' }, 'agent'],
    ['claude-code', { agent: 'a" & calc & "', platform: 'win32' }, 'by its id'],
    ['codex', { agent: 'a $(calc)', platform: 'win32' }, 'by its id'],
    ['cursor', { agent: 'a \u201d; calc; \u201c', platform: 'win32' }, 'by its id'],
    ['codex', { agent: 'a'.repeat(201) }, 'agent'],
    ['codex', { name: 'a b' }, 'name'],
    ['codex', { toolsets: 'core;rm' }, 'toolsets'],
    ['codex', { platform: 'beos' }, 'platform'],
  ])('refuses what the client does not support: %s %j', async (client, query, why) => {
    const { status, json } = await guide(client, query)
    expect([status, json.error.code]).toEqual([400, 'bad_request'])
    expect(json.error.message).toContain(why)
  })

  test('needs a session', async () => {
    expect((await app.call('GET', '/me/connect/codex', undefined, { token: null })).status).toBe(401)
  })
})
