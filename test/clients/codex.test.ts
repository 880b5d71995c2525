import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { statement } from '../../src/platform/db/db.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { defaultOperatorFile, startApp, type TestApp } from '../harness/app.ts'
import { until } from '../harness/until.ts'
import type { UpstreamServer } from '../harness/upstream-server.ts'
import { longChunks, longUsage, programOf, type Ran, run, spend, throwAwayHome } from './programs.ts'

const eventsOf = statement<[orgId: number], { kind: string; outcome: string }>(
  'test.clients_events',
  `select kind, outcome from usage_events where org_id = $1::int order by id`,
)

/** A simulated provider in the Responses API, beside the servers of the harness. */
function operatorFile(urls: { alpha: string; beta: string; indus: string }): object {
  const { providers, models } = defaultOperatorFile(urls)
  const simulated = { id: 'simulated', base_url: sandbox.url, dialect: 'openai-responses', auth: 'none' }
  const native = { provider: 'simulated', upstream_model: 'sandbox-chat', input_inr_per_mtok: 20, output_inr_per_mtok: 80 }
  return {
    providers: [...providers, simulated],
    models: [...models, { id: 'native-chat', kind: 'chat', context_length: 131_072, tools: true, routes: [native] }],
  }
}

let app: TestApp
let sandbox: Awaited<ReturnType<typeof startSandbox>>
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  sandbox = await startSandbox({ clock: systemClock, ids: systemIds, host: '127.0.0.1' })
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' }, operatorFile })
  home = throwAwayHome()
})
afterAll(async () => {
  home.remove()
  await app.stop()
  await sandbox.close()
})
afterEach(() => {
  for (const server of [app.alpha, app.others.resp]) server.reset()
})

async function codex(model: string, prompt: string, token = app.key, more = '', command: readonly string[] = ['exec']): Promise<Ran> {
  const folder = join(home.path, '.codex')
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'config.toml'),
    `model = "${model}"
model_provider = "brigade"

[model_providers.brigade]
name = "Brigade"
base_url = "${app.baseUrl}/v1"
env_key = "BRIGADE_KEY"
wire_api = "responses"
${more}`,
  )
  const args = [...command, '--skip-git-repo-check', '-c', 'sandbox_mode=danger-full-access', prompt]
  return await run(programOf('CODEX_PROGRAM'), args, { cwd: home.work, env: { HOME: home.path, CODEX_HOME: folder, BRIGADE_KEY: token } })
}

const charged = async (): Promise<readonly { kind: string; outcome: string }[]> => {
  await app.gateway.app.limits.flushNow()
  return app.db.many(eventsOf, app.orgId)
}

test.each([
  { model: 'sandbox-chat', way: 'translated' },
  { model: 'native-chat', way: 'relayed' },
])('Codex completes a turn with a tool call, $way, and prints the answer', async ({ model }) => {
  const before = (await charged()).length
  const { code, stdout, stderr } = await codex(model, 'call exec_command {"cmd":"echo made-by-$((2000+26))"}')
  expect({ code, stdout, stderr: code === 0 ? '' : stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('the tool answered with') })
  // Codex shows what its tool has printed.
  expect(stderr).toContain('made-by-2026')
  expect((await charged()).slice(before)).toEqual([
    { kind: 'responses', outcome: 'ok' },
    { kind: 'responses', outcome: 'ok' },
  ])
})

test('Codex goes on in the same thread, with the thinking of the turn before', async () => {
  const before = (await charged()).length
  await codex('sandbox-reasoning', 'call exec_command {"cmd":"echo made-by-$((2000+26))"}')
  const next = await codex('sandbox-reasoning', 'call exec_command {"cmd":"echo again-$((2000+27))"}', app.key, '', ['exec', 'resume', '--last'])
  expect({ code: next.code, stderr: next.code === 0 ? '' : next.stderr }).toEqual({ code: 0, stderr: '' })
  expect(next.stderr).toContain('again-2027')
  expect((await charged()).slice(before).map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok', 'ok'])
})

test('Codex calls a tool of an MCP server by its namespace', async () => {
  const server = `
[mcp_servers.gw]
url = "${app.baseUrl}/mcp"
bearer_token_env_var = "BRIGADE_KEY"
`
  const { code, stdout, stderr } = await codex('sandbox-chat', 'call mcp__gw__whoami {}', app.key, server)
  expect({ code, stderr: code === 0 ? '' : stderr }).toMatchObject({ code: 0 })
  expect(stderr + stdout).toContain('whoami')
  expect(stdout).toContain('the tool answered with')
})

describe.each([
  { model: 'alpha-only', way: 'translated', upstream: (): UpstreamServer => app.alpha },
  { model: 'responses-model', way: 'relayed', upstream: (): UpstreamServer => app.others.resp },
])('a stream that is cut, $way', ({ model, way, upstream }) => {
  test('ends Codex with the error, and it does not try again, when the budget of its agent is spent', async () => {
    const agent = await app.newAgent(`spent ${model}`)
    await app.setBudget('agent', agent.id, 0.4)
    const isRelayed = way === 'relayed'
    const native = { input_tokens: 60_000, output_tokens: 50_000, total_tokens: 110_000 }
    upstream().script({ chunks: longChunks, chunkIntervalMs: 1, usage: isRelayed ? native : longUsage })
    const { code, stderr } = await codex(model, 'go on', agent.token)
    expect(code).not.toBe(0)
    expect(stderr).toContain('Quota exceeded')
    expect(upstream().requests).toHaveLength(1)
    // The gateway reads the rest of the stream for its usage before it charges the call.
    await until(async () => (await charged()).at(-1)?.outcome === 'cut', 'the cut call is charged')
  })

  test('ends Codex with the error, and it does not wait, when the budget of its agent was spent before', async () => {
    const agent = await app.newAgent(`spent before ${model}`)
    await spend(app, agent, model)
    upstream().reset()
    const { code, stderr } = await codex(model, 'go on', agent.token)
    expect(code).not.toBe(0)
    expect(stderr).toContain('Quota exceeded')
    expect(stderr).not.toContain('Reconnecting')
    expect(upstream().requests).toHaveLength(0)
  })

  test('ends Codex with the error, and it does not try again, when its agent is revoked', async () => {
    const agent = await app.newAgent(`revoked ${model}`)
    upstream().script({ holdAfterChunks: 3 })
    const running = codex(model, 'go on', agent.token)
    await upstream().arrived(1, 30_000)
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})).status).toBe(200)
    const { code, stderr } = await running
    expect(code).not.toBe(0)
    expect(stderr).toContain('agent_revoked')
    expect(upstream().requests).toHaveLength(1)
    expect(stderr).not.toContain('Reconnecting')
  })
})
