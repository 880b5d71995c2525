import { z } from 'zod'
import { endpointOf, reply } from '../../../platform/endpoint.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { reader, signedIn } from '../../orgs/accounts/signed-in.ts'
import { privateHeaders } from '../pages/page-frame.ts'
import type { Sessions } from '../sessions.ts'
import { browserFamilies } from './browser-family.ts'
import { type OwnSessions, sessionsListedMax } from './own-sessions.ts'
import type { ListedSession } from './session-list-queries.ts'

const row = endpointOf<{ ownSessions: OwnSessions; sessions: Sessions }>()

const tag = 'sign-in'
const ok = z.literal(true)
const session = z.object({
  id: z.int(),
  current: z.boolean().describe('The session of this request.'),
  browser: z.enum(browserFamilies).nullable().describe('The browser that signed in; null: unknown.'),
  org: z.object({ id: z.int(), name: z.string() }).describe('Where it works now. POST /me/orgs/switch moves the current one.'),
  created_at: z.string(),
  last_used_at: z.string().nullable().describe('To within some minutes.'),
  expires_at: z.string(),
})

const viewOf = ({ id, isCurrent, browser, orgId, orgName, createdAt, lastUsedAt, expiresAt }: ListedSession): z.output<typeof session> => ({
  id,
  current: isCurrent,
  browser: browserFamilies.find(family => family === browser) ?? null,
  org: { id: orgId, name: orgName },
  created_at: createdAt.toISOString(),
  last_used_at: lastUsedAt?.toISOString() ?? null,
  expires_at: expiresAt.toISOString(),
})

export const sessionEndpoints = {
  listSessions: row({
    at: 'GET /me/sessions',
    auth: 'session',
    access: {},
    tag,
    summary: `The sessions of the signed-in person in every organisation: the current one, then the newest, at most ${sessionsListedMax}. An agent has none.`,
    input: {},
    output: z.object({ sessions: z.array(session) }),
    errors: [],
    async handle({ ownSessions }, _input, call) {
      const principal = reader(call.principal)
      return { sessions: principal.kind === 'agent' ? [] : (await ownSessions.list(principal)).map(viewOf) }
    },
  }),

  endSession: row({
    at: 'DELETE /me/sessions/{id}',
    auth: 'session',
    access: {},
    tag,
    summary: 'Ends an own session: every process refuses it within a second. The current one signs out and clears its cookie.',
    input: { path: z.object({ id: z.string().describe('Session id.') }) },
    output: z.object({ ok, id: z.int() }),
    errors: ['not_found'],
    async handle({ ownSessions, sessions }, { path }, call) {
      const id = rowId(path.id) ?? 0
      const { isCurrent } = await ownSessions.end(signedIn(call.principal), id)
      const ended = reply.json({ ok: true, id }, 200, privateHeaders)
      return isCurrent ? reply.withCookies(ended, [sessions.clearingCookie()]) : ended
    },
  }),

  endOtherSessions: row({
    at: 'DELETE /me/sessions',
    auth: 'session',
    access: {},
    tag,
    summary: 'Ends every session of the signed-in person except the current one.',
    input: {},
    output: z.object({ ok, ended: z.int().describe('Number of sessions that ended.') }),
    errors: [],
    handle: async ({ ownSessions }, _input, call) => ({ ok: true, ended: await ownSessions.endOthers(signedIn(call.principal)) }),
  }),
}
