/** Helpers for families of agents over HTTP, shared by the tests of children. */
import { expect } from 'vitest'
import type { TestApp, TestReply } from '../harness/app.ts'

/** An agent with its own token. */
export interface Member {
  readonly id: number
  readonly token: string
}

/** The code of an error. Errors of Google's form have it as the reason of their details. */
export const codeIn = (json: TestReply['json']): string | undefined =>
  typeof json?.error?.code === 'number' ? json.error.details?.[0]?.reason : json?.error?.code
export const said = ({ status, json }: TestReply) => [status, codeIn(json)]

let made = 0
export const newName = (word = 'agent'): string => `${word} ${made++}`

/** Calls to a running gateway, made by its owner and by its agents. */
export function familyOf(app: TestApp) {
  const budget = (id: number, inr: number | null) => app.call('POST', `/v1/me/agents/${id}/budget`, { monthly_budget_inr: inr })
  const mint = (id: number, body: object = {}, token = app.key) => app.call('POST', `/v1/me/agents/${id}/token`, body, { token })
  const child = (parent: Member, body: object = {}) =>
    app.call('POST', `/v1/me/agents/${parent.id}/children`, { name: newName('child'), ...body }, { token: parent.token })
  const chat = (token: string, body: object = {}, headers: Record<string, string> = {}) => {
    const whole = { model: 'alpha-only', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50, ...body }
    return app.call('POST', '/v1/chat/completions', whole, { token, headers })
  }
  return {
    budget,
    mint,
    child,
    chat,
    patch: (id: number, body: object) => app.call('PATCH', `/v1/me/agents/${id}`, body),
    revoke: (id: number) => app.call('POST', `/v1/me/agents/${id}/revoke`, {}),
    listed: async (id: number) => (await app.call('GET', '/v1/me/agents')).json.agents.find((agent: { id: number }) => agent.id === id),
    /** Creates an agent with a full key. The agent may have children. */
    async lead(monthlyInr: number | null = null, body: object = {}): Promise<Member> {
      const { id } = (await app.call('POST', '/v1/me/agents', { name: newName('lead'), may_delegate: true, ...body })).json
      if (monthlyInr !== null) expect((await budget(id, monthlyInr)).status).toBe(200)
      return { id, token: (await mint(id)).json.access_token }
    },
    /** Creates a child and returns it as its parent received it. */
    async born(parent: Member, body: object = {}): Promise<Member> {
      const reply = await child(parent, body)
      expect(reply.status, reply.text).toBe(201)
      return { id: reply.json.agent.id, token: reply.json.access_token }
    },
    /** Sends chats until the budget is spent, at most 200. A refusal because a call that just ended still holds budget does not count. */
    async chatUntilRefused(token: string, headers: Record<string, string> = {}): Promise<TestReply> {
      let reply = await chat(token, {}, headers)
      const goesOn = () => reply.status === 200 || reply.headers.get('x-should-retry') === 'true'
      for (let i = 0; i < 200 && goesOn(); i++) reply = await chat(token, {}, headers)
      return reply
    },
  }
}
