import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import { mayCall, type Principal } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'
import type { Memory } from '../memory.ts'
import { type ShareActor, shareMembersMax } from '../sharing/shares.ts'
import { readTwin, writeTwin } from './endpoint-parts.ts'

const row = endpointOf<{ memory: Memory }>()
const tag = 'memory'

const pageMax = 200

/** Only a person may change access: no agent, no inference key and no key without a user. */
const changesAccess = { scope: 'full', userBacked: true } as const

const share = z.object({
  id: z.int().describe('What the audit trail calls it.'),
  space: z.string().describe('Its objects are under shared/<space>/.'),
  owner: z.int().describe('User id.'),
  member_uids: z.array(z.int()).describe('Who was granted access, by user id, without the owner.'),
  role: z.enum(['owner', 'member', 'manager']).describe('manager: owner or admin of the organisation, not in the share; it opens no data.'),
})
const changed = share.extend({ ok: z.literal(true) })
const spacePath = z.object({ space: z.string() })
const memberPath = spacePath.extend({ uid: z.string().describe('User id.') })

function actorOf({ orgId, userId }: Principal): ShareActor {
  if (userId === null) throw fail('forbidden')
  return { orgId, userId }
}

export const shareEndpoints = {
  listShares: row({
    at: 'GET /v1/me/memory/shares',
    twin: readTwin('GET /me/memory/shares'),
    auth: 'key',
    access: { agentScope: 'memory:read' },
    tag,
    summary: 'The open shares that the caller owns or belongs to, by name.',
    input: {
      query: z.object({
        all: z.enum(['true', 'false']).optional().describe('true: every open share of the organisation. For sessions and full keys of owners and admins.'),
        limit: z.coerce.number().int().min(1).max(pageMax).default(pageMax).describe('Shares of a page.'),
        cursor: z.string().max(100).optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({ shares: z.array(share), next_cursor: z.string().nullable().describe('null: this was the last page.') }),
    errors: ['bad_request', 'forbidden', 'memory_not_configured'],
    async handle({ memory }, { query: { all, limit, cursor } }, { principal }) {
      const isAll = all === 'true'
      if (isAll) {
        const verdict = mayCall(principal, { ...changesAccess, role: 'admin' })
        if (!verdict.ok) throw fail('forbidden', { message: verdict.why })
      }
      await memory.configured(principal.orgId)
      return memory.shares.list(principal.orgId, principal.userId, { isAll, limit, cursor })
    },
  }),

  createShare: row({
    at: 'POST /v1/me/memory/shares',
    twin: writeTwin('POST /me/memory/shares'),
    auth: 'key',
    access: changesAccess,
    tag,
    summary: 'Opens a space that the caller owns. Of a space that the caller owns already it adds the missing grants (200).',
    input: {
      body: z.object({
        // The name may be absent here, because an unconfigured store is reported before a missing name.
        space: z.string().default('').describe('1 to 64 small letters, digits and hyphens. A name is used once: it stays taken when the share is retired.'),
        member_uids: z.array(z.number()).max(shareMembersMax).default([]).describe('Active members of the organisation, by user id.'),
      }),
    },
    output: changed,
    status: 201,
    errors: ['bad_request', 'bad_name', 'cap', 'forbidden', 'memory_not_configured', 'space_taken', 'space_retired'],
    async handle({ memory }, { body }, { principal }) {
      await memory.configured(principal.orgId)
      // A number that cannot be an id matches no user.
      const made = await memory.shares.create(
        actorOf(principal),
        body.space,
        body.member_uids.map(uid => rowId(uid) ?? 0),
      )
      return reply.json({ ok: true, ...made.share }, made.isNew ? 201 : 200)
    },
  }),

  grantShare: row({
    at: 'PUT /v1/me/memory/shares/{space}/members/{uid}',
    twin: writeTwin('PUT /me/memory/shares/{space}/members/{uid}'),
    auth: 'key',
    access: changesAccess,
    tag,
    summary: 'Grants an active member of the organisation. For the owner of the share, and owners and admins of the organisation.',
    input: { path: memberPath },
    output: changed,
    errors: ['cap', 'forbidden', 'memory_not_configured', 'not_found', 'space_retired'],
    async handle({ memory }, { path }, { principal }) {
      await memory.configured(principal.orgId)
      return { ok: true, ...(await memory.shares.grant(actorOf(principal), path.space, rowId(path.uid))) }
    },
  }),

  revokeShare: row({
    at: 'DELETE /v1/me/memory/shares/{space}/members/{uid}',
    twin: writeTwin('DELETE /me/memory/shares/{space}/members/{uid}'),
    auth: 'key',
    access: changesAccess,
    tag,
    summary: 'Takes a grant away, from the next call on. Safe to repeat.',
    input: { path: memberPath },
    output: changed,
    errors: ['forbidden', 'memory_not_configured', 'not_found', 'share_owner'],
    async handle({ memory }, { path }, { principal }) {
      await memory.configured(principal.orgId)
      return { ok: true, ...(await memory.shares.revoke(actorOf(principal), path.space, rowId(path.uid))) }
    },
  }),

  retireShare: row({
    at: 'DELETE /v1/me/memory/shares/{space}',
    twin: writeTwin('DELETE /me/memory/shares/{space}'),
    auth: 'key',
    access: changesAccess,
    tag,
    summary: 'Closes a share permanently: its grants end, its objects stay in the bucket where nobody can read them, and its name is never used again.',
    input: { path: spacePath },
    output: changed,
    errors: ['forbidden', 'memory_not_configured', 'not_found'],
    async handle({ memory }, { path }, { principal }) {
      await memory.configured(principal.orgId)
      return { ok: true, ...(await memory.shares.retire(actorOf(principal), path.space)) }
    },
  }),
}
