import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { until } from '../harness/until.ts'
import { listenBetween, longChunks, longUsage, programOf, type Ran, run, throwAwayHome } from './programs.ts'

const eventsOf = statement<[orgId: number], { kind: string; outcome: string; model: string }>(
  'test.claude_events',
  `select kind, outcome, model from usage_events where org_id = $1::int order by id`,
)

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' } })
  home = throwAwayHome()
})
afterAll(async () => {
  home.remove()
  await app.stop()
})
afterEach(() => app.alpha.reset())

function claude(model: string, args: readonly string[], more: Record<string, string> = {}): Promise<Ran> {
  const quiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_MAX_RETRIES: '2' }
  const ours = { HOME: home.path, ANTHROPIC_BASE_URL: app.baseUrl, ANTHROPIC_MODEL: model, ...quiet }
  const credential = 'ANTHROPIC_API_KEY' in more ? {} : { ANTHROPIC_AUTH_TOKEN: app.key }
  return run(programOf('CLAUDE_PROGRAM'), args, { cwd: home.work, env: { ...ours, ...credential, ...more } })
}

const charged = async (): Promise<readonly { kind: string; outcome: string; model: string }[]> => {
  await app.gateway.app.limits.flushNow()
  return app.db.many(eventsOf, app.orgId)
}

const bash = `call Bash ${JSON.stringify({ command: 'echo made-by-$((2000+26))', description: 'prints a word' })}`

test.each([
  { credential: 'ANTHROPIC_AUTH_TOKEN', model: 'sandbox-chat' },
  { credential: 'ANTHROPIC_API_KEY', model: 'sandbox-reasoning' },
])('Claude Code completes a turn with a tool call on $model, with the key in $credential', async ({ credential, model }) => {
  const before = (await charged()).length
  const { code, stdout, stderr } = await claude(model, ['-p', bash, '--allowedTools', 'Bash(echo:*)', '--output-format', 'stream-json', '--verbose'], {
    [credential]: app.key,
  })
  expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('made-by-2026')
  expect(stdout).toContain('the tool answered with')
  expect((await charged()).slice(before)).toEqual([
    { kind: 'messages', outcome: 'ok', model },
    { kind: 'messages', outcome: 'ok', model },
  ])
})

test('Claude Code finds a tool that it keeps back, and goes on', async () => {
  const before = (await charged()).length
  const { code, stdout, stderr } = await claude('sandbox-chat', ['-p', 'call ToolSearch {"query":"select:WebFetch","max_results":1}'])
  expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('the tool answered with')
  expect((await charged()).slice(before).map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
})

test('Claude Code asks for the models of the gateway', async () => {
  const { code } = await claude('sandbox-chat', ['-p', 'Hello'], { CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1' })
  expect(code).toBe(0)
  const kept = JSON.parse(readFileSync(join(home.path, '.claude', 'cache', 'gateway-models.json'), 'utf8'))
  expect(kept.models).toContainEqual(expect.objectContaining({ id: 'claude-test' }))
})

test('Claude Code has its context counted, and that costs nothing', async () => {
  const before = (await charged()).length
  const between = await listenBetween(app.baseUrl)
  const { code, stdout } = await claude('sandbox-chat', ['-p', '/context'], { ANTHROPIC_BASE_URL: between.url })
  await between.close()
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('sandbox-chat') })
  expect([...new Set(between.calls)]).toEqual(['POST /v1/messages/count_tokens?beta=true 200'])
  expect(await charged()).toHaveLength(before)
})

test('Claude Code reaches the tools of the gateway', async () => {
  const added = ['mcp', 'add', '--transport', 'http', 'brigade', `${app.baseUrl}/mcp`, '--header', `Authorization: Bearer ${app.key}`]
  expect((await claude('sandbox-chat', added)).code).toBe(0)
  const { stdout } = await claude('sandbox-chat', ['mcp', 'list'])
  expect(stdout).toMatch(/brigade: .*Connected/)
  const called = await claude('sandbox-chat', ['-p', 'call mcp__brigade__whoami {}', '--allowedTools', 'mcp__brigade__whoami'], {
    ENABLE_TOOL_SEARCH: 'false',
  })
  expect({ code: called.code, stdout: called.stdout }).toEqual({ code: 0, stdout: expect.stringContaining('the tool answered with') })
})

describe('a stream that is cut', () => {
  test('ends Claude Code with the error when its agent is revoked, and the provider is not asked again', async () => {
    const agent = await app.newAgent('claude revoked')
    app.alpha.script({ holdAfterChunks: 3 })
    const running = claude('alpha-only', ['-p', 'go on'], { ANTHROPIC_AUTH_TOKEN: agent.token })
    await app.alpha.arrived(1, 30_000)
    expect((await app.call('POST', `/v1/me/agents/${agent.id}/revoke`, {})).status).toBe(200)
    const { code, stdout, stderr } = await running
    expect({ code, said: stdout + stderr }).toEqual({ code: 1, said: expect.stringContaining('revoked') })
    expect(app.alpha.requests).toHaveLength(1)
  })

  test('ends Claude Code with the error when the budget of its agent is spent, and the provider is not asked again', async () => {
    const agent = await app.newAgent('claude spent')
    await app.setBudget('agent', agent.id, 0.6)
    app.alpha.script({ chunks: longChunks, chunkIntervalMs: 1, usage: longUsage })
    const { code, stdout, stderr } = await claude('alpha-only', ['-p', 'go on'], { ANTHROPIC_AUTH_TOKEN: agent.token })
    expect({ code, said: stdout + stderr }).toEqual({ code: 1, said: expect.stringContaining('budget') })
    expect(app.alpha.requests).toHaveLength(1)
    await until(async () => (await charged()).at(-1)?.outcome === 'cut', 'the cut call is charged')
  })
})
