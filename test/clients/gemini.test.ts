import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'
import { until } from '../harness/until.ts'
import { listenBetween, longChunks, longUsage, programOf, type Ran, run, spend, throwAwayHome } from './programs.ts'

const eventsOf = statement<[orgId: number], { kind: string; outcome: string; model: string }>(
  'test.gemini_cli_events',
  `select kind, outcome, model from usage_events where org_id = $1::int order by id`,
)

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp({ dialects: true, env: { SANDBOX: 'on' } })
  home = throwAwayHome()
  const folder = join(home.path, '.gemini')
  mkdirSync(folder)
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' } },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    general: { enableAutoUpdate: false, disableAutoUpdate: true, disableUpdateNag: true },
  }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings))
})
afterAll(async () => {
  home.remove()
  await app.stop()
})
afterEach(() => {
  for (const server of [app.alpha, app.others.gem]) server.reset()
})

function gemini(model: string, prompt: string, more: Record<string, string> = {}, format = 'text'): Promise<Ran> {
  const env = { HOME: home.path, GOOGLE_GEMINI_BASE_URL: app.baseUrl, GEMINI_API_KEY: app.key, GEMINI_CLI_TRUST_WORKSPACE: 'true', ...more }
  return run(programOf('GEMINI_PROGRAM'), ['--model', model, '--approval-mode', 'yolo', '--output-format', format, '--prompt', prompt], { cwd: home.work, env })
}

const charged = async (): Promise<readonly { kind: string; outcome: string; model: string }[]> => {
  await app.gateway.app.limits.flushNow()
  return app.db.many(eventsOf, app.orgId)
}

const shell = `call run_shell_command ${JSON.stringify({ command: 'expr 2000 + 26', description: 'adds' })}`

test('CLOUD-05 the Gemini CLI completes a job with a tool call and prints the answer', async () => {
  const before = (await charged()).length
  const { code, stdout, stderr } = await gemini('sandbox-chat', shell, {}, 'stream-json')
  expect({ code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ code: 0, stderr: '' })
  const events = stdout.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  expect(events.find(({ type }) => type === 'tool_result')).toMatchObject({ status: 'success', output: '2026' })
  const said = events.flatMap(({ type, role, content }) => (type === 'message' && role === 'assistant' ? [content] : []))
  expect(said.join('')).toContain('the tool answered with')
  expect((await charged()).slice(before)).toEqual([
    { kind: 'gemini', outcome: 'ok', model: 'sandbox-chat' },
    { kind: 'gemini', outcome: 'ok', model: 'sandbox-chat' },
  ])
})

test.each(['alpha-only', 'gemini-model'])('CLOUD-05: at a budget the Gemini CLI ends its turn with the reason and asks no second time (%s)', async model => {
  const agent = await app.newAgent(`gemini spent ${model}`)
  await spend(app, agent, model)
  const between = await listenBetween(app.baseUrl)
  const { code, stdout, stderr } = await gemini(model, 'Hello', { GEMINI_API_KEY: agent.token, GOOGLE_GEMINI_BASE_URL: between.url })
  await between.close()
  const refused = between.calls.filter(call => call.includes('enerateContent'))
  expect({ code, said: stdout + stderr, refused }).toEqual({
    code: expect.any(Number),
    said: expect.stringContaining('budget'),
    refused: [`POST /v1beta/models/${model}:streamGenerateContent?alt=sse 429`],
  })
  expect(code).not.toBe(0)
})

test.each(['alpha-only', 'gemini-model'])(
  'a stream that a budget cuts ends the turn of the Gemini CLI, and the provider is not asked again (%s)',
  async model => {
    const agent = await app.newAgent(`gemini cut ${model}`)
    await app.setBudget('agent', agent.id, 0.6)
    const server = model === 'gemini-model' ? app.others.gem : app.alpha
    const native = { promptTokenCount: 60_000, candidatesTokenCount: 50_000, totalTokenCount: 110_000 }
    server.script({ chunks: longChunks, chunkIntervalMs: 1, usage: model === 'gemini-model' ? native : longUsage })
    const { code, stdout, stderr } = await gemini(model, 'go on', { GEMINI_API_KEY: agent.token })
    expect(server.requests).toHaveLength(1)
    expect({ code, said: stderr + stdout.slice(-2000) }).toEqual({ code: expect.any(Number), said: expect.stringContaining('budget') })
    expect(code).not.toBe(0)
    await until(async () => (await charged()).at(-1)?.outcome === 'cut', 'the cut call is charged')
  },
)
