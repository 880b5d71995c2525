/** Real coding agents with sub-agents: one job is one run, and a cap of the run ends their turns. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import type { RecordedRequest, UpstreamScript } from '../harness/upstream-server.ts'
import { listenBetween, programOf, type Ran, run, throwAwayHome } from './programs.ts'

let app: TestApp
let home: ReturnType<typeof throwAwayHome>
beforeAll(async () => {
  app = await startApp()
  home = throwAwayHome()
})
afterAll(async () => {
  home.remove()
  await app.stop()
})
afterEach(() => app.alpha.reset())

type Message = { readonly role: string; readonly content: unknown }
interface Made {
  readonly name: string
  readonly args: object
}

const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
const answer = (message: object, finish: string): UpstreamScript => ({
  body: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
    usage,
  },
})
let made = 0
const says = (content: string): UpstreamScript => answer({ content }, 'stop')
const calls = (...list: readonly Made[]): UpstreamScript =>
  answer(
    {
      content: null,
      tool_calls: list.map(({ name, args }) => ({ id: `call_${++made}`, type: 'function', function: { name, arguments: JSON.stringify(args) } })),
    },
    'tool_calls',
  )

const messagesOf = ({ json }: RecordedRequest): readonly Message[] => (json?.['messages'] as Message[] | undefined) ?? []
const namesOf = ({ json }: RecordedRequest): readonly string[] =>
  ((json?.['tools'] as { function: { name: string } }[] | undefined) ?? []).map(tool => tool.function.name)
const asks = (request: RecordedRequest, words: string): boolean =>
  messagesOf(request).some(({ role, content }) => role === 'user' && JSON.stringify(content).includes(words))
const results = (request: RecordedRequest): readonly string[] =>
  messagesOf(request).flatMap(({ role, content }) => (role === 'tool' ? [JSON.stringify(content)] : []))
const toolIn = (request: RecordedRequest, ending: RegExp): string => namesOf(request).find(name => ending.test(name)) ?? 'none'

/** The model of a job that starts sub-agents one after the other, and says at its end what they answered. */
function delegating(subagents: number): (request: RecordedRequest) => UpstreamScript {
  return request => {
    if (namesOf(request).length === 0) return says('A title')
    if (!asks(request, 'PARENT-JOB')) return says('CHILD-DONE')
    const answered = results(request)
    const wait = toolIn(request, /wait_agent$/)
    const spawned = answered.flatMap(text => /agent_id\W+([0-9a-f-]{36})/.exec(text)?.[1] ?? [])
    const waits = answered.length - spawned.length
    if (wait !== 'none' && spawned.length > waits) return calls({ name: wait, args: { targets: [spawned.at(-1)], timeout_ms: 20_000 } })
    const begun = wait === 'none' ? answered.length : waits
    if (begun >= subagents) return says(`PARENT-DONE ${answered.filter(text => text.includes('CHILD-DONE')).length}`)
    const args = { description: `child ${begun}`, prompt: `CHILD-JOB ${begun}` }
    const spawn = toolIn(request, /^(Agent|task)$|spawn_agent$/)
    if (spawn === 'Agent') return calls({ name: spawn, args: { ...args, subagent_type: 'general-purpose', run_in_background: false } })
    return calls({ name: spawn, args: spawn === 'task' ? { ...args, subagent_type: 'general' } : { message: args.prompt } })
  }
}

/** The model of a job that never ends. */
function endless(request: RecordedRequest): UpstreamScript {
  if (namesOf(request).length === 0) return says('A title')
  const shell = toolIn(request, /^(Bash|bash|exec_command)$/)
  const command = `expr ${results(request).length} + 1`
  return calls({ name: shell, args: shell === 'exec_command' ? { cmd: command } : { command, description: 'adds' } })
}

interface Client {
  readonly name: string
  /** How often the client repeats a refused call, whatever the reply says. */
  readonly retries: number
  run(baseUrl: string, token: string, prompt: string): Promise<Ran>
}

const claude: Client = {
  name: 'Claude Code',
  retries: 0,
  run: (baseUrl, token, prompt) =>
    run(programOf('CLAUDE_PROGRAM'), ['-p', prompt, '--allowedTools', 'Bash(expr:*)', 'Agent'], {
      cwd: home.work,
      env: {
        HOME: home.path,
        ANTHROPIC_BASE_URL: baseUrl,
        ANTHROPIC_MODEL: 'alpha-only',
        ANTHROPIC_AUTH_TOKEN: token,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    }),
}

const codex: Client = {
  name: 'Codex',
  retries: 0,
  run(baseUrl, token, prompt) {
    const folder = join(home.path, '.codex')
    mkdirSync(folder, { recursive: true })
    const provider = `[model_providers.brigade]\nname = "Brigade"\nbase_url = "${baseUrl}/v1"\nenv_key = "BRIGADE_KEY"\nwire_api = "responses"\n`
    writeFileSync(join(folder, 'config.toml'), `model = "alpha-only"\nmodel_provider = "brigade"\n\n${provider}`)
    const args = ['exec', '--skip-git-repo-check', '-c', 'sandbox_mode=danger-full-access', prompt]
    return run(programOf('CODEX_PROGRAM'), args, { cwd: home.work, env: { HOME: home.path, CODEX_HOME: folder, BRIGADE_KEY: token } })
  },
}

const opencode: Client = {
  name: 'opencode',
  // Its SDK repeats every 429 and does not read `x-should-retry`.
  retries: 5,
  run(baseUrl, token, prompt) {
    const options = { baseURL: `${baseUrl}/v1`, apiKey: '{env:BRIGADE_KEY}' }
    const provider = { npm: '@ai-sdk/openai-compatible', name: 'Brigade', options, models: { 'alpha-only': { name: 'Alpha', tool_call: true } } }
    writeFileSync(join(home.work, 'opencode.json'), JSON.stringify({ provider: { brigade: provider }, permission: 'allow' }))
    const env = { HOME: home.path, BRIGADE_KEY: token, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }
    return run(programOf('OPENCODE_PROGRAM'), ['run', '-m', 'brigade/alpha-only'], { cwd: home.work, env, stdin: prompt })
  },
}

async function capped(name: string, caps: object): Promise<{ id: number; token: string }> {
  const agent = await app.newAgent(name)
  const { status, text } = await app.call('PATCH', `/v1/me/agents/${agent.id}`, { run: caps })
  if (status !== 200) throw new Error(text)
  return agent
}

/** The runs of an agent, and the statuses of the calls of models that a client made, in order. */
async function play(client: Client, agent: { id: number; token: string }, prompt: string) {
  const between = await listenBetween(app.baseUrl)
  const ran = await client.run(between.url, agent.token, prompt)
  await between.close()
  await app.gateway.app.limits.flushNow()
  const { json } = await app.call('GET', `/v1/me/runs?agent_id=${agent.id}`)
  const statuses = between.calls.flatMap(call => /\/(messages\?beta=true|messages|responses|completions) (\d+)$/.exec(call)?.[2] ?? [])
  return { ran, said: ran.stdout + ran.stderr, runs: json.runs as { run_id: string; calls: number; state: string }[], statuses }
}

describe.each([claude, codex, opencode])('RUN-08: $name', client => {
  test('RUN-08 a job with its sub-agents is one run, and a further sub-agent is refused while those that it has go on', async () => {
    app.alpha.script(delegating(1))
    const one = await play(client, await capped(`${client.name} one`, { max_subagents: 1 }), 'PARENT-JOB')
    expect(one.said).toContain('PARENT-DONE 1')
    expect(one.runs).toHaveLength(1)
    expect(one.runs[0]?.calls).toBe(one.statuses.length)
    expect(new Set(one.statuses)).toEqual(new Set(['200']))

    app.alpha.reset()
    app.alpha.script(delegating(2))
    const two = await play(client, await capped(`${client.name} two`, { max_subagents: 1 }), 'PARENT-JOB')
    expect(two.said).toContain('PARENT-DONE 1')
    expect(two.runs).toHaveLength(1)
    expect(two.statuses.filter(status => status === '429')).toHaveLength(1 + client.retries)
  })

  test('RUN-08 at a cap on the calls of the run it ends its turn with the reason, and no provider is asked again', async () => {
    app.alpha.script(endless)
    const { said, runs, statuses } = await play(client, await capped(`${client.name} calls`, { max_calls: 4 }), 'go on')
    expect(statuses.slice(0, 4)).toEqual(['200', '200', '200', '200'])
    expect(statuses.slice(4)).toEqual(Array(1 + client.retries).fill('429'))
    expect(app.alpha.requests).toHaveLength(4)
    expect(runs).toMatchObject([{ calls: 4, state: 'held' }])
    expect(said).toMatch(/calls of this run|Quota exceeded/)
  })
})
