/** Runs the samples of docs/guides/verify-agent-tokens.md unchanged, with tokens of a real gateway. Samples whose tools are missing are skipped by name. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { movableClock } from '../harness/clock.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/guides/verify-agent-tokens.md'), 'utf8')
/** The sample of the page in this language. */
const sample = (language: string): string => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1] ?? ''
const works = (program: string, ...args: string[]): boolean => spawnSync(program, args, { timeout: 20_000 }).status === 0

const hourMs = 3_600_000
const goModules = ['github.com/MicahParks/keyfunc/v3', 'github.com/golang-jwt/jwt/v5']
const folder = mkdtempSync(join(tmpdir(), 'brigade-verify-'))
let app: TestApp
let other: TestApp
/** One token of each kind. Only the first one is good. */
let tokens: Readonly<Record<string, string>>

/** Returns the token with another name of the agent in it, and the old signature. */
function tampered(token: string): string {
  const [head = '', body = '', signature = ''] = token.split('.')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  return [head, Buffer.from(JSON.stringify({ ...claims, org: claims.org + 1 })).toString('base64url'), signature].join('.')
}

/** Returns the token without a signature, as a verifier that trusts the header would accept it. */
function unsigned(token: string): string {
  const [, body = ''] = token.split('.')
  return [Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url'), body, ''].join('.')
}

async function minted(gateway: TestApp, name: string): Promise<string> {
  const { id } = (await gateway.call('POST', '/v1/me/agents', { name })).json
  return (await gateway.call('POST', `/v1/me/agents/${id}/token`, { scope: 'usage:read', ttl_s: 600 })).json.access_token
}

beforeAll(async () => {
  const clock = movableClock(Date.now() - hourMs)
  ;[app, other] = await Promise.all([startApp({ clock }), startApp()])
  const expired = await minted(app, 'early')
  clock.moveTo(Date.now())
  const good = await minted(app, 'triage')
  tokens = { good, expired, tampered: tampered(good), unsigned: unsigned(good), foreign: await minted(other, 'triage'), key: app.key }
})
afterAll(async () => {
  await Promise.all([app?.stop(), other?.stop()])
  rmSync(folder, { recursive: true, force: true })
})

/** The words of a driver after which a token follows on each line of its input. It prints `ok <org> <agent> <scope>` or `no` for each. */
type Driver = (env: Readonly<Record<string, string>>, lines: string) => Promise<string>

/** Asks a sample about every token, as a service of the gateway and as one that expects another audience. */
async function verdicts(driver: Driver): Promise<{ here: Record<string, string>; elsewhere: string }> {
  const env = { GATEWAY: app.baseUrl }
  const said = (await driver(env, Object.values(tokens).join('\n'))).trim().split('\n')
  const elsewhere = await driver({ ...env, AUDIENCE: 'https://billing.example.com' }, tokens['good'] ?? '')
  return { here: Object.fromEntries(Object.keys(tokens).map((name, index) => [name, said[index] ?? ''])), elsewhere: elsewhere.trim() }
}

async function expectVerdicts(driver: Driver): Promise<void> {
  const { here, elsewhere } = await verdicts(driver)
  const good = `ok ${app.orgId} triage usage:read`
  expect(here).toEqual({ good, expired: 'no', tampered: 'no', unsigned: 'no', foreign: 'no', key: 'no' })
  expect(elsewhere).toBe('no')
}

function started(program: string, args: readonly string[], cwd: string): Driver {
  return async (env, lines) => {
    const child = run(program, args, { cwd, env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...pythonPath(), ...env }, timeout: 60_000 })
    child.child.stdin?.end(`${lines}\n`)
    return (await child).stdout
  }
}

/** Packages of Python may be in a folder that PYTHONPATH names. */
function pythonPath(): Record<string, string> {
  const path = process.env['PYTHONPATH']
  return path === undefined ? {} : { PYTHONPATH: path }
}

test('the page names the claims that a token has, and no other', () => {
  const token = tokens['good'] ?? ''
  const header = Object.keys(decodeProtectedHeader(token))
  const claims = Object.keys(decodeJwt(token))
  const named = [...page.matchAll(/^\| (?:header )?(`\w+`(?:, `\w+`)*) \|/gm)].flatMap(([, names = '']) => names.replaceAll('`', '').split(', '))
  expect([...header, ...claims].filter(name => !named.includes(name))).toEqual([])
  expect(named.filter(name => ![...header, ...claims, 'act', 'via', 'run'].includes(name))).toEqual([])
  expect(decodeJwt(token)).toMatchObject({ iss: app.baseUrl, aud: [app.baseUrl, `${app.baseUrl}/mcp`], org: app.orgId, agent: { name: 'triage' } })
})

test('the list of keys may be kept as long as the page says', async () => {
  const reply = await fetch(`${app.baseUrl}/.well-known/jwks.json`)
  expect(reply.headers.get('cache-control')).toBe('public, max-age=300')
})

test('a token of an agent that was ended is inactive at the gateway, as the page says', async () => {
  const token = await minted(app, 'ended')
  const { id } = decodeJwt<{ agent: { id: number } }>(token).agent
  const asked = async (): Promise<unknown> => {
    const headers = { authorization: `Bearer ${app.key}` }
    const reply = await fetch(`${app.baseUrl}/oauth/introspect`, { method: 'POST', headers, body: new URLSearchParams({ token }) })
    return reply.json()
  }
  expect(await asked()).toMatchObject({ active: true })
  await app.call('POST', `/v1/me/agents/${id}/revoke`)
  expect(await asked()).toEqual({ active: false })
})

test('FIRST-13 the sample for jose accepts a good token, and refuses expired, tampered, unsigned and foreign ones and another audience', async () => {
  const project = join(folder, 'jose')
  mkdirSync(join(project, 'node_modules'), { recursive: true })
  for (const name of ['jose', '@types', 'undici-types']) symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name), 'junction')
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  writeFileSync(join(project, 'verify.ts'), sample('ts'))
  writeFileSync(
    join(project, 'driver.js'),
    `import { createInterface } from 'node:readline'
import { verifyAgentToken } from './verify.js'
for await (const token of createInterface({ input: process.stdin }))
  console.log(await verifyAgentToken(token).then(({ org, agent, scope }) => ['ok', org, agent.name, scope].join(' '), () => 'no'))
`,
  )
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
  const flags = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--types', 'node', '--skipLibCheck', 'verify.ts']
  await run(process.execPath, [tsc, '--ignoreConfig', ...flags], { cwd: project }).catch(error => {
    throw new Error(error.stdout)
  })
  await expectVerdicts(started(process.execPath, ['driver.js'], project))
})

const hasPython = works('python3', '-c', 'import jwt, cryptography; assert jwt.PyJWKClient')
describe.runIf(hasPython)(hasPython ? 'with python3' : 'on PyJWT (not installed)', () => {
  test('the sample for PyJWT accepts a good token, and refuses the same others', async () => {
    const project = join(folder, 'python')
    mkdirSync(project)
    writeFileSync(join(project, 'verify.py'), sample('python'))
    writeFileSync(
      join(project, 'driver.py'),
      `import sys
import jwt
from verify import verify_agent_token
for line in sys.stdin:
    try:
        claims = verify_agent_token(line.strip())
        print("ok", claims["org"], claims["agent"]["name"], claims["scope"])
    except jwt.PyJWTError:
        print("no")
`,
    )
    await expectVerdicts(started('python3', ['driver.py'], project))
  })
})

const goEnv = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: folder,
  GOFLAGS: '-mod=mod -modcacherw',
  GOTOOLCHAIN: 'local',
  ...(process.env['GOPROXY'] === undefined ? {} : { GOPROXY: process.env['GOPROXY'] }),
})

/** Makes a module with the sample and its packages. Returns whether that was possible: it needs Go and the proxy for its modules. */
function goModule(project: string): boolean {
  if (!works('go', 'version')) return false
  mkdirSync(join(project, 'agenttoken'), { recursive: true })
  writeFileSync(join(project, 'agenttoken', 'agenttoken.go'), sample('go'))
  writeFileSync(
    join(project, 'main.go'),
    `package main

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"example.com/service/agenttoken"
)

func main() {
	gateway, audience := os.Getenv("GATEWAY"), os.Getenv("AUDIENCE")
	if audience == "" {
		audience = gateway
	}
	verifier, err := agenttoken.New(context.Background(), gateway, audience)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		claims, err := verifier.Verify(lines.Text())
		if err != nil {
			fmt.Println("no")
			continue
		}
		fmt.Println("ok", claims.Org, claims.Agent.Name, claims.Scope)
	}
}
`,
  )
  const go = (...args: string[]): boolean => spawnSync('go', args, { cwd: project, env: goEnv(), timeout: 120_000 }).status === 0
  return go('mod', 'init', 'example.com/service') && go('get', ...goModules)
}

const goProject = join(folder, 'go')
const hasGo = goModule(goProject)
describe.runIf(hasGo)(hasGo ? 'with go' : 'on Go and its modules (not installed)', () => {
  test('the sample for Go accepts a good token, and refuses the same others', { timeout: 240_000 }, async () => {
    await run('go', ['build', '-o', 'service', '.'], { cwd: goProject, env: goEnv() })
    await expectVerdicts(started(join(goProject, 'service'), [], goProject))
  })
})
