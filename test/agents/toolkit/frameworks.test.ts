/** The real packages on a real gateway: tokens end in the middle of a run, and agents are revoked in the middle of one. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import type { RecordedRequest, UpstreamScript } from '../../harness/upstream-server.ts'
import { frameworks } from './frameworks.ts'
import { countedAgent, revoke, wordsOf } from './setup.ts'

const clock = movableClock()
let app: TestApp

beforeAll(async () => {
  app = await startApp({ clock })
})
afterAll(() => app?.stop())
beforeEach(() => app.alpha.reset())

/** Asks for the tool first, and answers when its result is there. */
function asksForTool({ json }: RecordedRequest): UpstreamScript {
  const messages = json?.['messages'] as { role: string }[]
  if (messages.some(({ role }) => role === 'tool')) return {}
  const call = { id: 'call_1', type: 'function', function: { name: 'wait', arguments: '{}' } }
  const choice = { index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [call] } }
  return {
    body: {
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model: 'alpha-upstream',
      choices: [choice],
      usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
    },
  }
}

describe.each(frameworks.map(framework => [framework.name, framework] as const))('TOOL-01 %s', (_name, framework) => {
  test('a token that expires in the middle of a run is replaced, and the run goes on', async () => {
    const { agent, sent } = await countedAgent(app)
    app.alpha.script(asksForTool)
    const answer = await framework.run(agent, async () => {
      clock.advance(20 * 60_000)
      return 'waited'
    })
    expect(answer).toBe('Hello from the test upstream')
    expect(sent.filter(line => line.startsWith('401'))).toHaveLength(1)
    expect(sent.filter(line => line.endsWith('/token'))).toEqual(['200 /v1/me/agents/:id/token', '200 /v1/me/agents/:id/token'])
  })

  test('an agent that is revoked in the middle of a run ends it at once, and nothing more is sent', async () => {
    const { id, agent, sent, ends } = await countedAgent(app)
    app.alpha.script(asksForTool)
    let before = 0
    const run = framework.run(agent, async () => {
      await revoke(app, id)
      before = sent.length
      return 'waited'
    })
    const error = await run.then(
      answer => expect.fail(`answered ${answer}`),
      (thrown: unknown) => thrown,
    )
    expect(wordsOf(error)).toContain('agent_revoked')
    expect(sent.slice(before)).toEqual([expect.stringMatching(/^401 \/v1\//)])
    expect(ends).toEqual(['agent_revoked'])
    await expect(framework.run(agent, async () => 'never')).rejects.toSatisfy(thrown => wordsOf(thrown).includes('agent_revoked'))
    expect(sent.slice(before), 'nobody asks for a revoked agent').toHaveLength(1)
  })

  test('a stream of an agent that is revoked ends with an error, and the next call says why without a second try', async () => {
    const { id, agent, sent } = await countedAgent(app)
    app.alpha.script({ holdAfterChunks: 2 })
    let before = 0
    const streamed = framework.stream(agent, async () => {
      before = sent.length
      await revoke(app, id)
    })
    const isNamed = (thrown: unknown): boolean => wordsOf(thrown).includes('agent_revoked')
    await expect(streamed).rejects.toSatisfy(thrown => isNamed(thrown) || framework.hidesReason === true)
    expect(sent.slice(before), 'no second try').toEqual([])
    await expect(framework.run(agent, async () => 'never')).rejects.toSatisfy(isNamed)
    expect(sent.slice(before)).toEqual([expect.stringMatching(/^401 /)])
  })
})
