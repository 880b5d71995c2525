/** Connects agents to a test gateway with the toolkit, and records their requests. */
import { expect } from 'vitest'
import { type ConnectedAgent, type ConnectOptions, connectAgent } from '../../../src/agents/toolkit/connect-agent.ts'
import type { TestApp } from '../../harness/app.ts'

/** An agent that was created for one test. */
export interface CountedAgent {
  readonly id: number
  readonly name: string
  readonly agent: ConnectedAgent
  /** Status and path of every request to the gateway, such as `200 /v1/me/agents/:id/token`. */
  readonly sent: string[]
  /** The codes with which `onRevoked` was called. */
  readonly ends: string[]
}

let made = 0

/** Creates an agent and a connection that acts as this agent. */
export async function countedAgent(app: TestApp, options: Partial<ConnectOptions> = {}): Promise<CountedAgent> {
  const name = `agent ${++made}`
  const { id } = (await app.call('POST', '/v1/me/agents', { name })).json
  const sent: string[] = []
  const ends: string[] = []
  const agent = connectAgent({
    baseUrl: app.baseUrl,
    agent: name,
    credential: app.key,
    fetch: countingFetch(sent, id),
    onRevoked: error => ends.push(error.code),
    ...options,
  })
  return { id, name, agent, sent, ends }
}

/** Returns the real fetch, which also records the replies. */
export function countingFetch(sent: string[], id = 0): typeof fetch {
  return async (input, init) => {
    const reply = await fetch(input, init)
    const { pathname } = new URL(input instanceof Request ? input.url : input)
    sent.push(`${reply.status} ${pathname.replace(`/${id}/`, '/:id/')}`)
    return reply
  }
}

/** Revokes the agent. */
export async function revoke(app: TestApp, id: number): Promise<void> {
  expect((await app.call('POST', `/v1/me/agents/${id}/revoke`)).json).toMatchObject({ status: 'revoked' })
}

/** Returns what the user of a framework can read in an error: the error, its causes, and their texts. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(error)
  return [error.message, JSON.stringify(error), error.cause === undefined ? '' : wordsOf(error.cause)].join(' ')
}

/** Returns a provider's reply in the chat format that calls a tool. `at` distinguishes the calls of one conversation. */
export function toolCallReply(name: string, input: object, at: number) {
  const call = { id: `t${at}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }
  const choice = { index: 0, finish_reason: 'tool_calls', message: { role: 'assistant', content: null, tool_calls: [call] } }
  const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 }
  return { body: { id: `c${at}`, object: 'chat.completion', created: 1, model: 'x', usage, choices: [choice] } }
}
