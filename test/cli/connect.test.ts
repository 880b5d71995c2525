import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { readTextFile, replaceTextFile } from '../../src/cli/connect/connect-file.ts'
import { type WrittenFile, writePlan } from '../../src/cli/connect/connect-write.ts'
import { planConnect, snippet } from '../../src/connect/connect.ts'
import { type ClientName, type ConnectParams, type ConnectPlace, clientNames } from '../../src/connect/connect-plan.ts'
import { startApp } from '../harness/app.ts'
import { startProgram } from '../harness/started-program.ts'
import { runHere } from './run-here.ts'
import { brigade } from './stdio-clients.ts'

let home: string
let count = 0
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'brigade-connect-'))
  return () => rmSync(home, { recursive: true, force: true })
})

const paramsOf = (more: Partial<ConnectParams> = {}): ConnectParams => ({
  baseUrl: 'http://127.0.0.1:8787',
  name: 'brigade',
  scope: 'user',
  models: 'default',
  tools: true,
  model: 'auto',
  agent: null,
  bridge: false,
  keyFile: null,
  toolsets: null,
  trustTools: false,
  ...more,
})
const placeOf = (more: Partial<ConnectPlace> = {}): ConnectPlace => ({
  platform: 'linux',
  home,
  project: join(home, 'project'),
  env: {},
  program: ['/usr/bin/node', '/opt/my brigade/brigade.js'],
  exists: existsSync,
  ...more,
})
const write = (client: ClientName, params: Partial<ConnectParams> = {}, place: Partial<ConnectPlace> = {}): WrittenFile[] =>
  writePlan(planConnect(client, paramsOf(params), placeOf(place)), () => String(count++))
const textOf = (...path: string[]): string => readFileSync(join(home, ...path), 'utf8')
// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary settings.
const jsonIn = (...path: string[]): any => JSON.parse(textOf(...path))
// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary settings.
const tomlIn = (...path: string[]): any => parseToml(textOf(...path))
function put(text: string, ...path: string[]): string {
  const file = join(home, ...path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  return file
}

describe.each(clientNames)('%s', client => {
  test('a second run changes nothing, and the written files contain no key and leave no temporary file', () => {
    for (const params of [{}, { agent: 'reviewer', models: 'no' as const }, { scope: 'project' as const }]) {
      const [first, second] = [write(client, params), write(client, params)]
      expect(first.map(({ outcome }) => outcome)).not.toContain('unchanged')
      expect(second.map(({ outcome }) => outcome)).toEqual(second.map(() => 'unchanged'))
      for (const { path } of first) {
        expect(readFileSync(path, 'utf8')).not.toMatch(/br-[A-Za-z0-9]{8}/)
        expect(readdirSync(join(path, '..')).filter(name => name.endsWith('.new'))).toEqual([])
      }
    }
  })

  test('changing from a key to an agent and back leaves no setting of the other way', () => {
    write(client, { models: 'no' })
    const before = planConnect(client, paramsOf({ models: 'no' }), placeOf()).files.map(({ path }) => [path, readFileSync(path, 'utf8')])
    write(client, { models: 'no', agent: 'reviewer' })
    expect(
      planConnect(client, paramsOf({ models: 'no' }), placeOf())
        .files.map(({ path }) => readFileSync(path, 'utf8'))
        .join(),
    ).toContain('reviewer')
    write(client, { models: 'no' })
    for (const [path = '', text = ''] of before) expect(readFileSync(path, 'utf8').split('\n').sort()).toEqual(text.split('\n').sort())
  })

  test('settings that the person has added to the entry stay', () => {
    const [first] = write(client, { models: 'no' })
    const path = first?.path ?? ''
    const before = readFileSync(path, 'utf8')
    const added =
      client === 'codex'
        ? before.replace('[mcp_servers.brigade]', '[mcp_servers.brigade]\nstartup_timeout_sec = 7')
        : before.replace('"Authorization"', '"x-mine": "7", "Authorization"')
    writeFileSync(path, added.replace('8787', '9999'))
    write(client, { models: 'no' })
    const after = readFileSync(path, 'utf8')
    expect([/x-mine|startup_timeout_sec/.test(after), after.includes('8787'), after.includes('9999')]).toEqual([true, true, false])
  })

  test('a file that is not in its format stays unchanged, and the message names it', () => {
    for (const { path } of planConnect(client, paramsOf(), placeOf()).files) {
      rmSync(join(home, '.claude.json'), { force: true })
      put('{ "a": [ = ', path.slice(home.length + 1))
      expect(() => write(client)).toThrow(`${path} was left as it is: it is not`)
      expect(readFileSync(path, 'utf8')).toBe('{ "a": [ = ')
      expect(() => write(client)).toThrow('without --write')
    }
  })
})

describe('Codex', () => {
  test('connects models and tools, with the key in the environment', () => {
    write('codex')
    expect(tomlIn('.codex', 'config.toml')).toEqual({
      model: 'auto',
      model_provider: 'brigade',
      model_providers: { brigade: { name: 'Brigade', base_url: 'http://127.0.0.1:8787/v1', wire_api: 'responses', env_key: 'BRIGADE_KEY' } },
      mcp_servers: { brigade: { url: 'http://127.0.0.1:8787/mcp', bearer_token_env_var: 'BRIGADE_KEY' } },
    })
  })

  test('with an agent, a command prints its tokens, and the bridge passes the tools on', () => {
    write('codex', { agent: 'rev iewer', trustTools: true, toolsets: 'memory' })
    const { model_providers, mcp_servers } = tomlIn('.codex', 'config.toml')
    expect(model_providers.brigade).not.toHaveProperty('env_key')
    expect(model_providers.brigade.auth).toMatchObject({
      command: '/usr/bin/node',
      args: ['/opt/my brigade/brigade.js', 'agent', 'token', '--base-url', 'http://127.0.0.1:8787', '--agent', 'rev iewer'],
    })
    expect(mcp_servers.brigade).toMatchObject({
      args: ['/opt/my brigade/brigade.js', 'mcp', '--base-url', 'http://127.0.0.1:8787', '--agent', 'rev iewer', '--toolsets', 'memory'],
      env_vars: expect.arrayContaining(['BRIGADE_KEY']),
      default_tools_approval_mode: 'approve',
    })
  })

  test('a provider that the person chose stays chosen, unless --models changes it', () => {
    put('model = "gpt-5"\nmodel_provider = "openai"\n', '.codex', 'config.toml')
    expect(write('codex')[0]).toMatchObject({ outcome: 'changed', kept: ['model', 'model_provider'] })
    expect(tomlIn('.codex', 'config.toml')).toMatchObject({ model: 'gpt-5', model_provider: 'openai' })
    expect(write('codex', { models: 'yes' })[0]).toMatchObject({ changed: ['model', 'model_provider'], kept: [] })
    expect(tomlIn('.codex', 'config.toml')).toMatchObject({ model: 'auto', model_provider: 'brigade' })
  })

  test('CODEX_HOME changes where the file is, and a project gets only the tools', () => {
    write('codex', {}, { env: { CODEX_HOME: join(home, 'moved') } })
    expect(tomlIn('moved', 'config.toml').model).toBe('auto')
    write('codex', { scope: 'project' })
    expect(Object.keys(tomlIn('project', '.codex', 'config.toml'))).toEqual(['mcp_servers'])
    expect(() => write('codex', { scope: 'project', models: 'yes' })).toThrow('file of the user only')
  })
})

describe('Claude Code', () => {
  test('tools go into .claude.json and models into settings.json, and existing settings stay', () => {
    put('{"numStartups": 7, "mcpServers": {"other": {"command": "x"}}, "projects": {"/w": {"allowedTools": []}}}', '.claude.json')
    put('{\n\t"permissions": {"allow": ["Bash(ls:*)"]},\n\t"env": {"FOO": "1"}\n}\n', '.claude', 'settings.json')
    write('claude-code', { trustTools: true })
    expect(jsonIn('.claude.json')).toEqual({
      numStartups: 7,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Claude Code replaces the variable.
      mcpServers: { other: { command: 'x' }, brigade: { type: 'http', url: 'http://127.0.0.1:8787/mcp', headers: { Authorization: 'Bearer ${BRIGADE_KEY}' } } },
      projects: { '/w': { allowedTools: [] } },
    })
    expect(jsonIn('.claude', 'settings.json')).toEqual({
      permissions: { allow: ['Bash(ls:*)', 'mcp__brigade'] },
      env: { FOO: '1', ANTHROPIC_BASE_URL: 'http://127.0.0.1:8787', ANTHROPIC_MODEL: 'auto', ANTHROPIC_DEFAULT_HAIKU_MODEL: 'auto' },
      apiKeyHelper: 'printenv BRIGADE_KEY',
    })
  })

  test('an agent gets a helper that prints tokens, quoted for the shell of the platform', () => {
    write('claude-code', { agent: "o'neil" })
    expect(jsonIn('.claude', 'settings.json').apiKeyHelper).toBe(
      `/usr/bin/node '/opt/my brigade/brigade.js' agent token --base-url http://127.0.0.1:8787 --agent 'o'\\''neil'`,
    )
    expect(jsonIn('.claude.json').mcpServers.brigade).toMatchObject({ type: 'stdio', command: '/usr/bin/node' })
    const windows = { platform: 'win32', program: ['C:\\Program Files\\nodejs\\node.exe', 'C:\\b\\brigade.js'] }
    const [, settings] = planConnect('claude-code', paramsOf({ agent: 'a b' }), placeOf(windows)).files
    expect(settings && JSON.parse(snippet(settings)).apiKeyHelper).toBe(
      '"C:\\Program Files\\nodejs\\node.exe" C:\\b\\brigade.js agent token --base-url http://127.0.0.1:8787 --agent "a b"',
    )
  })

  test('--tools does not change the models, a project has .mcp.json, and CLAUDE_CONFIG_DIR changes where both files are', () => {
    expect(write('claude-code', { models: 'no' }).map(({ path }) => path)).toEqual([join(home, '.claude.json')])
    expect(write('claude-code', { scope: 'project' }).map(({ path }) => path)).toEqual([
      join(home, 'project', '.mcp.json'),
      join(home, 'project', '.claude', 'settings.local.json'),
    ])
    expect(write('claude-code', {}, { env: { CLAUDE_CONFIG_DIR: join(home, 'moved') } }).map(({ path }) => path)).toEqual([
      join(home, 'moved', '.claude.json'),
      join(home, 'moved', 'settings.json'),
    ])
  })
})

describe('editors and opencode', () => {
  test('Cursor reads the key from the variable, and has no models that can be connected', () => {
    write('cursor')
    expect(jsonIn('.cursor', 'mcp.json')).toEqual({
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Cursor replaces the variable.
      mcpServers: { brigade: { url: 'http://127.0.0.1:8787/mcp', headers: { Authorization: 'Bearer ${env:BRIGADE_KEY}' } } },
    })
    expect(() => write('cursor', { models: 'yes' })).toThrow('Leave --models out')
  })

  test('VS Code asks for the key once; its existing inputs and comments stay', () => {
    put(
      '{\n  // mine\n  "inputs": [{ "id": "x", "type": "promptString" }], // x\n  "servers": {\n    "other": { "command": "y" },\n  },\n}\n',
      'project',
      '.vscode',
      'mcp.json',
    )
    write('vscode', { scope: 'project' })
    const text = textOf('project', '.vscode', 'mcp.json')
    expect(text).toContain('// mine')
    expect(text).toContain('// x')
    expect(text).toMatch(/"other": \{\s+"command": "y"/)
    // biome-ignore lint/suspicious/noTemplateCurlyInString: VS Code replaces the input.
    expect(text).toContain('Bearer ${input:brigade-key}')
    const paths = (platform: string, env = {}): string => planConnect('vscode', paramsOf(), placeOf({ platform, home: '/srv/a', env })).files[0]?.path ?? ''
    expect(paths('linux')).toBe('/srv/a/.config/Code/User/mcp.json')
    expect(paths('darwin')).toBe('/srv/a/Library/Application Support/Code/User/mcp.json')
    expect(paths('win32', { APPDATA: 'C:\\Users\\a\\AppData\\Roaming' })).toBe('C:\\Users\\a\\AppData\\Roaming\\Code\\User\\mcp.json')
  })

  test('opencode keeps its .jsonc file, and with an agent only the tools are connected', () => {
    put('// hello\n{ "theme": "dark", "model": "x/y" }\n', '.config', 'opencode', 'opencode.jsonc')
    expect(write('opencode')[0]).toMatchObject({ path: join(home, '.config', 'opencode', 'opencode.jsonc'), kept: ['model'] })
    expect(textOf('.config', 'opencode', 'opencode.jsonc')).toMatch(/^\/\/ hello\n\{\s+"theme": "dark",\s+"model": "x\/y"/)
    write('opencode', { agent: 'reviewer', scope: 'project' })
    const made = jsonIn('project', 'opencode.json')
    expect(made.mcp.brigade.command.slice(-2)).toEqual(['--agent', 'reviewer'])
    expect(made).not.toHaveProperty('provider')
    expect(() => write('opencode', { agent: 'reviewer', models: 'yes' })).toThrow('cannot renew a token')
  })
})

test('with a key file, the settings of every client that can read a file name the file', () => {
  const keyFile = join(home, 'my key')
  const params = { keyFile, bridge: true }
  for (const client of clientNames) write(client, params)
  expect(jsonIn('.claude', 'settings.json').apiKeyHelper).toBe(`cat '${keyFile}'`)
  expect(tomlIn('.codex', 'config.toml').model_providers.brigade.auth).toMatchObject({ command: 'cat', args: [keyFile] })
  expect(jsonIn('.config', 'opencode', 'opencode.json').provider.brigade.options.apiKey).toBe(`{file:${keyFile}}`)
  for (const client of clientNames) {
    const { files, needsKeyInEnvironment } = planConnect(client, paramsOf(params), placeOf())
    expect([needsKeyInEnvironment, files.map(snippet).join().includes('BRIGADE_KEY') && client !== 'codex']).toEqual([false, false])
  }
})

describe('the settings file itself', () => {
  test('mode and links of a file stay; a new file is readable only for its owner, and in a project for everybody', () => {
    const real = put('{"a": 1}\n', 'dotfiles', 'claude.json')
    chmodSync(real, 0o640)
    symlinkSync(join('dotfiles', 'claude.json'), join(home, '.claude.json'))
    write('claude-code')
    expect(lstatSync(join(home, '.claude.json')).isSymbolicLink()).toBe(true)
    expect([statSync(real).mode & 0o777, jsonIn('dotfiles', 'claude.json').a]).toEqual([0o640, 1])
    expect(statSync(join(home, '.claude', 'settings.json')).mode & 0o777).toBe(0o600)
    symlinkSync(join(home, 'elsewhere.json'), join(home, 'project.link'))
    write('cursor', { scope: 'project' })
    expect(statSync(join(home, 'project', '.cursor', 'mcp.json')).mode & 0o777).toBe(0o644)
  })

  test('when a link points to a missing file, that file is made; a circle of links is refused', () => {
    mkdirSync(join(home, '.cursor'))
    symlinkSync(join('..', 'dotfiles', 'mcp.json'), join(home, '.cursor', 'mcp.json'))
    write('cursor')
    expect(jsonIn('dotfiles', 'mcp.json')).toHaveProperty('mcpServers')
    symlinkSync('b', join(home, 'a'))
    symlinkSync('a', join(home, 'b'))
    expect(() => readTextFile(join(home, 'a'))).toThrow('circle')
  })

  test('a change that another program made in the meantime is not overwritten', () => {
    const path = put('{"a": 1}', 'f.json')
    const read = readTextFile(path)
    writeFileSync(path, '{"a": 2}')
    expect(replaceTextFile(read, '{"a": 3}', false, 'x')).toBe(false)
    expect([textOf('f.json'), readdirSync(home)]).toEqual(['{"a": 2}', ['f.json']])
  })

  test('a read-only file stays unchanged', () => {
    const path = put('{"a": 1}', '.cursor', 'mcp.json')
    chmodSync(path, 0o444)
    expect(() => write('cursor')).toThrow(`${path} was left as it is: it is read-only`)
    expect([readFileSync(path, 'utf8'), readdirSync(join(home, '.cursor'))]).toEqual(['{"a": 1}', ['mcp.json']])
  })

  test('when one of two files cannot be merged, neither is written', () => {
    put('nonsense', '.claude', 'settings.json')
    expect(() => write('claude-code')).toThrow('settings.json was left as it is')
    expect(existsSync(join(home, '.claude.json'))).toBe(false)
  })

  test('a file that is not UTF-8 text stays unchanged', () => {
    writeFileSync(put('', '.claude.json'), Buffer.from([0x7b, 0xff, 0x7d]))
    expect(() => write('claude-code')).toThrow('no UTF-8')
  })
})

describe('brigade connect as a process', () => {
  async function type(...words: string[]): Promise<{ code: number | null; out: string; err: string }> {
    const env = { HOME: home, BRIGADE: 'https://gw.example.com/', BRIGADE_KEY: 'br-secret-secret-secret' }
    const { ended, out, err } = startProgram(process.execPath, [brigade, 'connect', ...words], { env, cwd: home })
    return { code: await ended, out: out(), err: err() }
  }

  test('without --write, it prints what belongs into which file and writes nothing', async () => {
    const { code, out, err } = await type('codex')
    expect([code, err, readdirSync(home)]).toEqual([0, '', []])
    expect(out).toContain(join(home, '.codex', 'config.toml'))
    expect(out).toContain('base_url = "https://gw.example.com/v1"')
    expect(out).toContain('codex mcp add brigade --url https://gw.example.com/mcp --bearer-token-env-var BRIGADE_KEY')
    expect(out).not.toContain('br-secret')
  })

  test('--write says what changed and puts the path of this program into the settings; --json prints JSON for programs', async () => {
    const app = await startApp()
    onTestFinished(() => app.stop())
    const type = async (...words: string[]): Promise<{ code: number | null; out: string }> => {
      const env = { HOME: home, BRIGADE: app.baseUrl, BRIGADE_KEY: app.key }
      const { ended, out } = startProgram(process.execPath, [brigade, 'connect', ...words], { env, cwd: home })
      return { code: await ended, out: out() }
    }
    const { code, out } = await type('codex', '--write', '--agent', 'reviewer')
    expect([code, out]).toEqual([0, expect.stringContaining('mcp_servers.brigade.command')])
    expect(tomlIn('.codex', 'config.toml').mcp_servers.brigade).toMatchObject({
      command: process.execPath,
      args: expect.arrayContaining([brigade, 'reviewer']),
    })
    const again = JSON.parse((await type('codex', '--write', '--agent', 'reviewer', '--json')).out)
    expect(again).toMatchObject({ client: 'codex', files: [{ outcome: 'unchanged', changed: [] }] })
  })

  test.each([
    [['emacs'], 'It knows claude-code, codex, cursor, opencode, vscode'],
    [['codex', '--name', 'a b'], '--name takes'],
    [['codex', '--model', ''], '--model takes'],
    [['codex', '--user', '--project'], 'exclude each other'],
    [['cursor', '--trust-tools'], '--trust-tools is for'],
    [['codex', '--base-url', 'ftp://x'], '--base-url must be'],
  ])('%j is wrong usage', async (words, says) => {
    const { code, err } = await runHere(['connect', ...words], { HOME: home })
    expect([code, err]).toEqual([2, expect.stringContaining(says)])
  })
})
