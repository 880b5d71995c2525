/** Clients that `brigade connect --agent` has connected outlive the tokens of their agent. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { connect } from './connected.ts'
import { programOf, run, throwAwayHome } from './programs.ts'

/** Shorter than the turn below: the second call of the turn needs another token than the first. */
const tokenLifeSeconds = 4
const sleepSeconds = tokenLifeSeconds + 2

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp({ env: { SANDBOX: 'on', AGENT_TOKEN_TTL_S: String(tokenLifeSeconds) } })
  await app.gateway.app.memory.useFolder(app.orgId)
})
afterAll(() => app.stop())
beforeEach(() => {
  home = throwAwayHome()
})
afterEach(() => home.remove())

const env = (more: Record<string, string> = {}): Record<string, string> => ({ HOME: home.path, BRIGADE_KEY: app.key, ...more })
const requestsOf = async (agentId: number): Promise<number> =>
  (await app.call('GET', '/v1/usage')).json.by_agent.find(({ id }: { id: number }) => id === agentId)?.requests

test('Codex goes on with a new token when the one that its turn began with has ended', async () => {
  const { id } = await app.newAgent('codex at length')
  await connect(app, home, 'codex', '--trust-tools', '--agent', 'codex at length')
  const prompt = `call exec_command ${JSON.stringify({ cmd: `sleep ${sleepSeconds} && echo made-by-$((2000+26))`, yield_time_ms: 20_000 })}`
  const args = ['exec', '--skip-git-repo-check', '-c', 'sandbox_mode=danger-full-access', prompt]
  const { code, stdout, stderr } = await run(programOf('CODEX_PROGRAM'), args, { cwd: home.work, env: env() })
  expect({ code, stdout, stderr: code === 0 ? '' : stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('the tool answered with') })
  expect(stderr).toContain('made-by-2026')
  // The check of connect has made one of them.
  expect(await requestsOf(id)).toBe(3)
})

test('Claude Code goes on with a new token when the one that its turn began with has ended', async () => {
  const { id } = await app.newAgent('claude at length')
  await connect(app, home, 'claude-code', '--trust-tools', '--agent', 'claude at length')
  const prompt = `call Bash ${JSON.stringify({ command: `sleep ${sleepSeconds} && echo made-by-$((2000+26))`, timeout: 30_000 })}`
  const { code, stdout, stderr } = await run(programOf('CLAUDE_PROGRAM'), ['-p', prompt, '--allowedTools', 'Bash'], {
    cwd: home.work,
    env: env({ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', CLAUDE_CODE_MAX_RETRIES: '2', ENABLE_TOOL_SEARCH: 'false' }),
  })
  expect({ code, stdout, stderr: code === 0 ? '' : stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining('the tool answered with') })
  expect(await requestsOf(id)).toBeGreaterThanOrEqual(3)
})
