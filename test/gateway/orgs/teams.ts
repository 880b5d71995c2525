import { expect } from 'vitest'
import type { TestApp, TestMember, TestReply } from '../../harness/app.ts'

export interface Team {
  readonly orgId: number
  readonly owner: TestMember
  readonly admin: TestMember
  readonly member: TestMember
}

/** Status and error code of a reply. */
export const codeOf = (reply: TestReply) => [reply.status, reply.json.error?.code]

/** Makes teams and people in a running gateway, and sends requests in their names. */
export function teamsOf(app: TestApp) {
  let named = 0
  const as =
    (who: { cookie: string }) =>
    (method: string, path: string, body?: unknown): Promise<TestReply> =>
      app.call(method, path, body, { cookie: who.cookie })
  const invite = (who: { cookie: string }, email: string, role = 'member') => as(who)('POST', '/me/members', { email, role })
  return {
    as,
    invite,
    /** Makes a team organisation with three people, and returns its name too. */
    async team(): Promise<Team & { name: string }> {
      const name = `Team ${++named}`
      const { orgId, userId } = await app.otherOrg(name)
      const owner = { userId, email: `owner@team-${named}.test`, cookie: await app.signIn(userId, orgId) }
      return { name, orgId, owner, admin: await app.newMember('admin', { orgId }), member: await app.newMember('member', { orgId }) }
    },
    /** Makes a person who is only in an organisation of their own. */
    async stranger(): Promise<TestMember> {
      const name = `Lone ${++named}`
      const { orgId, userId } = await app.otherOrg(name)
      return { userId, email: `owner@lone-${named}.test`, cookie: await app.signIn(userId, orgId) }
    },
    members: async (who: { cookie: string }) => (await as(who)('GET', '/me/members')).json,
    invitations: async (who: { cookie: string }) => (await as(who)('GET', '/me/invitations')).json.invitations,
    roleOf: (orgId: number, { userId }: TestMember) => app.gateway.app.orgs.roleOf(orgId, userId),
    /** Makes the person a member of the organisation through an invitation. */
    async join(orgOwner: TestMember, person: TestMember, role = 'member'): Promise<void> {
      const { json } = await invite(orgOwner, person.email, role)
      expect((await as(person)('POST', `/me/invitations/${json.id}/accept`)).status).toBe(200)
    },
    async newKey(orgId: number, { userId }: TestMember): Promise<string> {
      const params = { orgId, userId, workspaceId: null, name: `key ${++named}`, scope: 'full', rpmLimit: null, dailyLimit: null } as const
      return (await app.gateway.app.keys.create(params)).key
    },
    chat: (token: string, more: object = {}) =>
      app.call('POST', '/v1/chat/completions', { model: 'test-model', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20, ...more }, { token }),
  }
}
