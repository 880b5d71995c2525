/** The toolkit as a package: its types in other projects, the programs of its documentation, and the files that npm publishes. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { startOidcIssuer } from '../oidc-issuer.ts'
import { type Consumer, makeConsumer } from './consumer.ts'

const root = new URL('../../../', import.meta.url)
const page = readFileSync(new URL('docs/guides/toolkit.md', root), 'utf8')
/** The programs of the page. The first one is `agent.ts` for the others. */
const programs = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text = '']) => text)

let consumer: Consumer
beforeAll(() => {
  consumer = makeConsumer()
})
afterAll(() => consumer?.remove())

describe('the types of the package', () => {
  beforeAll(() => {
    programs.forEach((text, index) => {
      consumer.write(index === 0 ? 'agent.ts' : `program-${index}.ts`, text)
    })
  })
  const files = () => programs.map((_, index) => (index === 0 ? 'agent.ts' : `program-${index}.ts`))

  test.each([
    ['Node, resolved as Node does', { module: 'nodenext', types: ['node'] }],
    ['a bundler', { module: 'esnext', moduleResolution: 'bundler', types: ['node'], lib: ['es2023', 'dom'] }],
  ])('the types fit every framework of the page in a project for %s', (_name, options) => {
    expect(consumer.typeErrors(files(), options)).toBe('')
  })

  test('the types need nothing of Node in a browser, and compile in strict projects that check libraries', () => {
    consumer.write(
      'browser.ts',
      `import { agentFetch, aiSdkMemoryTools, brigadeMemoryTool, brigadeStore, type ConnectedAgent, connectAgent, createAgentTokenProvider, memoryClient } from 'brigade-gateway/agents'
export const agent: ConnectedAgent = connectAgent({ baseUrl: location.origin, credential: 'token' })
export const signed: typeof fetch = agentFetch(createAgentTokenProvider({ baseUrl: location.origin, exchange: true, credential: async () => 'token' }))
// @ts-expect-error An agent is a name or an id.
connectAgent({ baseUrl: location.origin, credential: 'key', agent: true })
const memory = memoryClient({ baseUrl: location.origin, credential: 'token' })
export const all = [aiSdkMemoryTools({ memory }), brigadeMemoryTool({ memory }, { cache_control: { type: 'ephemeral' } }), brigadeStore({ memory, root: 'agents/x' })]
// @ts-expect-error Who reads the items is for the caller to say.
brigadeStore({ memory })
`,
    )
    const options = { module: 'esnext', moduleResolution: 'bundler', types: [], lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'] }
    expect(consumer.typeErrors(['browser.ts'], { ...options, skipLibCheck: false, exactOptionalPropertyTypes: true })).toBe('')
  })

  test('the types and the code of the package import only the package itself', () => {
    const folder = join(consumer.packageFolder, 'dist', 'agents', 'toolkit')
    const imported = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.js'))
      .flatMap(name => [...readFileSync(join(folder, name), 'utf8').matchAll(/^(?:im|ex)port [^;]*?from '([^']+)'/gm)].map(([, from = '']) => from))
    expect(imported.length).toBeGreaterThan(20)
    expect(imported.filter(from => !/^\.\.?\/([\w-]+\/)?[\w-]+\.js$/.test(from))).toEqual([])
  })
})

describe('the page about the toolkit', () => {
  let app: TestApp
  const folder = mkdtempSync(join(tmpdir(), 'brigade-docs-'))
  beforeAll(async () => {
    const issuer = await startOidcIssuer()
    await issuer.addKey('one')
    app = await startApp({ env: { SANDBOX: 'on', OUTBOUND_ALLOW: issuer.hostPort } })
    const { id } = (await app.call('POST', '/v1/me/agents', { name: 'triage' })).json
    await app.setBudget('agent', id, 100)
    await app.call('PUT', '/v1/me/memory-store', { store: 'folder' })
    const rule = { name: 'pods', issuer: issuer.url, subject: 'pod', agent_id: id, key_id: app.keyId }
    expect((await app.call('POST', '/me/agent-trust', rule, { cookie: await app.signIn() })).status).toBe(201)
    writeFileSync(join(folder, 'token'), `${await issuer.token({ sub: 'pod', aud: `${app.baseUrl}/orgs/${app.orgId}` })}\n`)
    // This exchange fetches the issuer's keys before the programs run.
    const warm = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: readFileSync(join(folder, 'token'), 'utf8').trim(),
    })
    expect((await fetch(`${app.baseUrl}/oauth/token`, { method: 'POST', body: warm })).status).toBe(200)
    await issuer.close()
  })
  afterAll(async () => {
    await app?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('the programs of the page run unchanged and end by themselves', async () => {
    const names = programs.map((text, index) => {
      const name = index === 0 ? 'agent.js' : `program-${index}.js`
      // One type argument is the only TypeScript syntax on the page.
      const here = text.replaceAll('https://gateway.example.com', app.baseUrl).replaceAll('/var/run/secrets/gateway', folder)
      consumer.write(name, here.replaceAll(/json<[^(]*>\(/g, 'json('))
      return name
    })
    consumer.write('all.js', names.map(name => `console.log('-- ${name}')\nawait import('./${name}')`).join('\n'))
    const said = await consumer.run('all.js', { BRIGADE_KEY: app.key, OPENAI_API_KEY: 'sk-mine', ANTHROPIC_API_KEY: 'sk-ant-mine' })
    const parts = said.split(/^-- .*\n/m).slice(1)
    expect(parts).toHaveLength(programs.length)
    expect(parts[0]).toContain("name: 'triage'")
    expect(parts[0]).toContain('cap_inr: 100')
    const all = parts.join('\n')
    expect(parts.every(part => part.trim() !== '')).toBe(true)
    for (const words of ["code: 'none'", 'undefined\n', 'sk-mine']) expect(all).not.toContain(words)
    expect(all).toContain("scope: 'usage:read'")
    expect(all).toContain('not_found There is no agent "nobody".')
    for (const words of ['The build is green.\nDeployed 4.2.\n triage', 'agents/triage/notes.md 2 Deployed 4.2.', "name: 'Kannada'"])
      expect(all).toContain(words)
    expect((await app.call('GET', '/v1/me/memory/list?prefix=agents/support/')).json.keys).toMatchObject([{ key: 'agents/support/users/7/language.json' }])
  })
})

test('the published npm package contains all files that run, and no tests', async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: fileURLToPath(root),
    shell: process.platform === 'win32',
  })
  const report: unknown = JSON.parse(stdout)
  const [packed] = (Array.isArray(report) ? report : Object.values(report as object)) as { files: { path: string }[] }[]
  const paths = packed?.files.map(({ path }) => path) ?? []
  const tops = new Set(paths.map(path => path.split('/')[0]))
  for (const needed of ['package.json', 'README.md', 'LICENSE', 'migrations', 'catalog', 'server-card', 'docs']) expect(tops).toContain(needed)
  // dist/ comes from the build, and may be old or incomplete here. Only the files that exist are checked.
  const { bin, exports, files } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  const entries: string[] = [...Object.values<string>(bin), ...Object.values<string>(exports['./agents'])].map(path => path.replace(/^\.\//, ''))
  for (const entry of entries) {
    expect(files).toContain(entry.split('/')[0])
    if (existsSync(new URL(entry, root))) expect(paths).toContain(entry)
  }
  for (const entry of entries.filter(path => path.includes('toolkit'))) expect(existsSync(join(consumer.packageFolder, entry)), entry).toBe(true)
  for (const unwanted of ['test', 'bench', 'src', 'scripts', 'node_modules', '.ci', '.brigade', '.env', '.env.example']) expect(tops).not.toContain(unwanted)
})
