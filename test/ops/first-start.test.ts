import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { until } from '../harness/app.ts'
import { call, chat } from '../harness/fleet.ts'
import { fixedCostConfig, type GatewayProcess, startProcess } from '../harness/process.ts'
import { startS3Server } from '../harness/s3-server.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'

// The tests need a long timeout, because each of them starts processes.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../', import.meta.url))
const cli = join(root, 'dist/cli/brigade.js')
/** An empty value counts as not set. This removes what the test harness sets. Only the port stays set, because 8787 may be in use. */
const nothingSet = { SANDBOX: '', LOCAL_SERVERS: '', LOG_LEVEL: '', DATA_DIR: '' }

/** Runs `brigade` in the folder of the gateway, as an operator does. */
async function brigade(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ stdout: string; json: Record<string, unknown> }> {
  const { stdout } = await run(process.execPath, [cli, ...args], { cwd: folder, env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env } })
  return { stdout, json: stdout.trim().startsWith('{') ? (JSON.parse(stdout) as Record<string, unknown>) : {} }
}

const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'first-start', version: '1' } },
}

describe('the first start', () => {
  const folder = mkdtempSync(join(tmpdir(), 'brigade-first-'))
  let gateway: GatewayProcess
  let firstOutput = ''
  const printed = (pattern: RegExp): string => pattern.exec(firstOutput)?.[1] ?? ''
  const key = (): string => printed(/API key +(\S+)/)
  const agentToken = (): string => printed(/agent token +(\S+)/)
  const start = async (): Promise<void> => {
    gateway = await startProcess(nothingSet, folder)
  }
  beforeAll(async () => {
    await start()
    // The address is on the first line. The rest of the output may arrive later.
    await until(() => gateway.output().includes('npx brigade demo'))
    firstOutput = gateway.output()
  })
  afterAll(async () => {
    await gateway?.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  test('in an empty folder without settings, the gateway prints its address, a key and an agent token, and keeps its data in one folder', async () => {
    expect(gateway.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(key()).toMatch(/^\S{20,}$/)
    expect(agentToken().split('.')).toHaveLength(3)
    expect(existsSync(join(folder, '.brigade', 'db'))).toBe(true)
    expect(statSync(join(folder, '.brigade', 'master.key')).mode & 0o077).toBe(0)
    const who = await call(gateway, agentToken(), 'GET', '/v1/me/whoami')
    expect([who.status, who.json.agent?.name]).toEqual([200, 'first-agent'])
  })

  test('a second gateway on the same port prints only one line, which says that the port is in use', async () => {
    const other = mkdtempSync(join(tmpdir(), 'brigade-second-'))
    const env = { PATH: process.env['PATH'] ?? '', HOME: other, PORT: new URL(gateway.baseUrl).port, LOG_LEVEL: 'silent' }
    await expect(run(process.execPath, [cli, 'serve'], { cwd: other, env })).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: `brigade: port ${env.PORT} at 127.0.0.1 is taken, perhaps by another Brigade. Stop that, or set PORT.\n`,
    })
    rmSync(other, { recursive: true, force: true })
  })

  test('the printed curl line works in a shell', async () => {
    const line = printed(/^ +(curl .*)$/m)
    const { stdout } = await run('sh', ['-c', line.replace('curl ', 'curl -sS ')])
    expect(JSON.parse(stdout).choices[0].message.content).not.toBe('')
  })

  test('the printed OpenAI SDK code runs unchanged', async () => {
    const snippet = printed(/( {2}import OpenAI[\s\S]*?console\.log\(.*\))/)
    const file = join(mkdtempSync(join(root, 'node_modules', '.first-start-')), 'snippet.mjs')
    writeFileSync(file, snippet)
    try {
      const { stdout } = await run(process.execPath, [file])
      expect(stdout.trim()).not.toBe('')
    } finally {
      rmSync(join(file, '..'), { recursive: true, force: true })
    }
  })

  test('an MCP client connects with the printed address and header', async () => {
    const [, url, header] = /claude mcp add --transport http brigade (\S+) --header "Authorization: (.+)"/.exec(firstOutput) ?? []
    const response = await fetch(url ?? '', {
      method: 'POST',
      headers: { authorization: header ?? '', 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(initialize),
    })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('"serverInfo"')
    const codexUrl = printed(/codex mcp add brigade --url (\S+)/)
    expect([codexUrl, printed(/export BRIGADE_KEY=(\S+)/)]).toEqual([url, key()])
  })

  test('the printed lines for Claude Code and Codex contain addresses, a key and a model that answer', async () => {
    const [, base = '', token = '', model = '', small = ''] =
      /ANTHROPIC_BASE_URL=(\S+) ANTHROPIC_AUTH_TOKEN=(\S+) ANTHROPIC_MODEL=(\S+) ANTHROPIC_DEFAULT_HAIKU_MODEL=(\S+) claude/.exec(firstOutput) ?? []
    for (const asked of [model, small]) {
      const reply = await call({ baseUrl: base }, token, 'POST', '/v1/messages', {
        model: asked,
        max_tokens: 50,
        messages: [{ role: 'user', content: 'Hello' }],
      })
      expect([reply.status, reply.json.type]).toEqual([200, 'message'])
    }
    const [, codexModel, codexBase] = /codex -c model=(\S+) .*base_url="(\S+?)\/v1"/.exec(firstOutput) ?? []
    const response = await call({ baseUrl: codexBase ?? '' }, key(), 'POST', '/v1/responses', { model: codexModel, input: 'Hello' })
    expect([response.status, response.json.status]).toEqual([200, 'completed'])
  })

  test('the simulated provider is on while no other provider is configured', async () => {
    const models = await call(gateway, key(), 'GET', '/v1/models')
    expect((models.json.data as { id: string }[]).some(model => model.id === 'sandbox-chat')).toBe(true)
    const reply = await call(gateway, key(), 'POST', '/v1/chat/completions', { model: 'sandbox-chat', messages: [{ role: 'user', content: 'Hello' }] })
    expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'sandbox'])
  })

  test('TEST-06 admin commands work on the running gateway', async () => {
    const { json: made } = await brigade(folder, ['admin', 'create', '--email', 'ops@example.test', '--org', 'Second', '--key-budget-inr', '5', '--json'])
    expect(made).toMatchObject({ org_id: expect.any(Number), key: expect.any(String), base_url: gateway.baseUrl })
    const { json: more } = await brigade(folder, ['admin', 'key', '--org', String(made['org_id']), '--scope', 'inference', '--rpm', '2', '--json'])
    const who = await call(gateway, String(more['key']), 'GET', '/v1/me/whoami')
    expect([who.status, who.json.scope]).toEqual([200, 'inference'])
    const budgets = await call(gateway, String(made['key']), 'GET', '/v1/me/budgets')
    expect(budgets.json.budgets).toMatchObject([{ scope: 'key', cap_inr: 5 }])
    expect((await call(gateway, String(more['key']), 'POST', '/v1/me/agents', { name: 'x' })).status).toBe(403)
  })

  test('TEST-06 admin commands work on a stopped gateway; the next start prints no secret and keeps every key', async () => {
    expect(await gateway.terminate()).toBe(0)
    const { json: made } = await brigade(folder, ['admin', 'key', '--org', '1', '--email', 'owner@localhost', '--name', 'made while stopped', '--json'])
    await start()
    expect(gateway.output()).not.toContain(key())
    expect(gateway.output()).not.toMatch(/API key|agent token|eyJ/)
    for (const credential of [key(), String(made['key'])]) expect((await call(gateway, credential, 'GET', '/v1/me/whoami')).status).toBe(200)
    const usage = await call(gateway, key(), 'GET', '/v1/usage')
    expect(usage.json.totals.requests).toBe(6)
  })
})

describe('settings of an operator', () => {
  let upstream: UpstreamServer
  let bare: { readonly gateway: GatewayProcess; readonly key: string }
  const folders: string[] = []
  const running: GatewayProcess[] = []
  const start = async (env: Readonly<Record<string, string>>): Promise<{ gateway: GatewayProcess; key: string }> => {
    const folder = mkdtempSync(join(tmpdir(), 'brigade-set-'))
    folders.push(folder)
    const gateway = await startProcess(env, folder)
    running.push(gateway)
    await until(() => gateway.output().includes('npx brigade demo'))
    return { gateway, key: /API key +(\S+)/.exec(gateway.output())?.[1] ?? '' }
  }
  beforeAll(async () => {
    upstream = await startUpstream()
  })
  afterAll(async () => {
    await Promise.all(running.map(gateway => gateway.kill()))
    await upstream?.close()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  test('TEST-01 two environment variables point a provider to a stub', async () => {
    const { gateway, key } = await start({ OPENAI_API_KEY: 'platform-secret', OPENAI_BASE_URL: upstream.url })
    const reply = await call(gateway, key, 'POST', '/v1/chat/completions', { model: 'auto', messages: [{ role: 'user', content: 'Hello' }] })
    expect([reply.status, reply.headers.get('x-br-provider')]).toEqual([200, 'openai'])
    expect(upstream.requests.at(-1)?.headers.authorization).toBe('Bearer platform-secret')
    await gateway.kill()
  })

  test('TEST-07 with only a database, requests for memory fail with an error code of their own', async () => {
    bare = await start({})
    const { json: made } = await brigade(bare.gateway.dataDir, ['admin', 'create', '--email', 'ops@example.test', '--org', 'Bare', '--json'], {
      DATA_DIR: bare.gateway.dataDir,
    })
    const list = await call(bare.gateway, String(made['key']), 'GET', '/v1/me/memory/list')
    expect([list.status, list.json.error?.code]).toEqual([404, 'memory_not_configured'])
    expect((await call(bare.gateway, String(made['key']), 'GET', '/v1/models')).status).toBe(200)
  })

  test('TEST-01 TEST-03 a memory store at a private address is refused until the operator allows exactly that address; an operator file adds a provider', async () => {
    const s3 = await startS3Server()
    const store = { store: 's3', endpoint: s3.endpoint, bucket: s3.bucket, region: 'auto', access_key: s3.accessKey, secret_key: s3.secretKey }
    try {
      const refused = await call(bare.gateway, bare.key, 'PUT', '/v1/me/memory-store', store)
      expect([refused.status, refused.json.error?.type]).toEqual([400, 'invalid_request_error'])
      const { gateway, key } = await start({ CONFIG_FILE: fixedCostConfig(upstream.url), OUTBOUND_ALLOW: s3.hostPort })
      expect((await chat(gateway, key, 5)).headers.get('x-br-provider')).toBe('fixed')
      const taken = await call(gateway, key, 'PUT', '/v1/me/memory-store', store)
      expect([taken.status, taken.json]).toEqual([200, { ok: true }])
    } finally {
      await s3.close()
    }
  })
})
