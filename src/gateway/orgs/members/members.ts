/** The people of an organisation: who is in it, with which role, and how a membership ends. Decision 0105 says why. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Capability, Role, SessionPrincipal } from '../../../platform/security/principal.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import {
  countOwners,
  endKeys,
  endMembership,
  endSessions,
  findMember,
  findMembership,
  type ListedMemberRow,
  leaveShares,
  leaveWorkspaces,
  listMembersAfter,
  lockOrg,
  updateMember,
  withdrawMadeBy,
} from './member-queries.ts'

export type ListedMember = ListedMemberRow

export interface MembersDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: ControlLog
}

/** What an owner requests of a member; what is left out stays. */
export interface MemberChange {
  readonly role?: Role
  readonly capabilities?: readonly Capability[]
}

/** News that somebody's role or membership changed, as `orgId:userId`: their sessions and keys there are read again everywhere. */
export function memberChanged(orgId: number, userId: number): NewsItem {
  return { kind: 'member_changed', ref: `${orgId}:${userId}` }
}

/** Ends every key that the person has in the organisation, for good, and tells webhooks; the news cut calls that run with them. */
export async function endKeysOf(tx: Tx, ids: Ids, orgId: number, userId: number, now: Date): Promise<NewsItem[]> {
  const ended = await tx.many(endKeys, orgId, userId, now)
  const atMs = now.getTime()
  for (const { id, prefix, tier, scope } of ended)
    await emit(tx, { id: eventId(ids, atMs), orgId, type: 'key.revoked', atMs, data: { key_id: id, prefix, tier, scope } })
  return ended.map(({ id }): NewsItem => ({ kind: 'key_revoked', ref: String(id) }))
}

/** Roles that somebody of a role may not invite. */
const beyondInviting: Readonly<Record<Role, readonly Role[]>> = { member: ['member', 'admin', 'owner'], admin: ['owner'], owner: [] }

const noMember = () => fail('not_found', { message: 'There is no such member. GET /me/members lists them.' })

/** Changes go one after the other by the lock on the organisation, so that it has an owner after each of them. */
export class Members {
  readonly #deps: MembersDeps

  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  /** One page, oldest account first, and the user id after which the next one begins; null at the end. */
  async list(orgId: number, page: { afterUserId: number; limit: number }): Promise<{ members: ListedMember[]; nextAfter: number | null }> {
    const rows = await this.#deps.db.many(listMembersAfter, orgId, page.afterUserId, page.limit + 1)
    const members = rows.slice(0, page.limit)
    return { members, nextAfter: rows.length > page.limit ? (members.at(-1)?.userId ?? null) : null }
  }

  /**
   * Sets role and capabilities; they hold from the next call on. Open invitations that the person could not make any more are withdrawn.
   * Only for owners. Throws `forbidden`, `not_found`, `last_owner`.
   */
  change(actor: SessionPrincipal, userId: number, params: MemberChange): Promise<ListedMember> {
    const { orgId } = actor
    const now = new Date(this.#deps.clock.nowMs())
    return this.#deps.controlLog.change(async tx => {
      if ((await lockedOrg(tx, actor)).actorRole !== 'owner') throw fail('forbidden', { message: 'This needs the role owner.' })
      const before = await tx.maybe(findMembership, orgId, userId)
      if (before === null) throw noMember()
      if (before.role === 'owner' && params.role !== undefined && params.role !== 'owner') await keepAnOwner(tx, orgId)
      await tx.exec(updateMember, orgId, userId, params.role ?? null, params.capabilities ?? null)
      if (params.role !== undefined) await tx.exec(withdrawMadeBy, orgId, userId, beyondInviting[params.role], now)
      return { value: await tx.one(findMember, orgId, userId), news: [memberChanged(orgId, userId)] }
    })
  }

  /**
   * Ends a membership: the person's own, or another's. Their keys end for good, running calls with them; their sessions here end; they
   * are taken out of the workspaces and lose their grants in shares of memory; open invitations that they made are withdrawn, or one of them could bring them back. Members may only leave; admins do not remove owners. Throws `forbidden`, `not_found`, `last_owner`.
   */
  async remove(actor: SessionPrincipal, userId: number): Promise<void> {
    const { controlLog, clock, ids } = this.#deps
    const { orgId } = actor
    const now = new Date(clock.nowMs())
    await controlLog.change(async tx => {
      const { actorRole } = await lockedOrg(tx, actor)
      if (actorRole === 'member' && userId !== actor.userId)
        throw fail('forbidden', { message: 'A member may leave. Removing others needs the role owner or admin.' })
      const leaving = await tx.maybe(findMembership, orgId, userId)
      if (leaving === null) throw noMember()
      if (leaving.role === 'owner') {
        if (actorRole !== 'owner') throw fail('forbidden', { message: 'An owner is removed by an owner only.' })
        await keepAnOwner(tx, orgId)
      }
      await tx.exec(leaveWorkspaces, orgId, userId)
      await tx.exec(leaveShares, orgId, userId)
      await tx.exec(withdrawMadeBy, orgId, userId, beyondInviting.member, now)
      await tx.exec(endSessions, orgId, userId, now)
      const keys = await endKeysOf(tx, ids, orgId, userId, now)
      await tx.exec(endMembership, orgId, userId)
      return { value: undefined, news: [memberChanged(orgId, userId), ...keys] }
    })
  }
}

/** Takes the lock and says what the actor is *now*: the session may have been checked before somebody else's change. Throws `forbidden` when no member any more. */
export async function lockedOrg(tx: Tx, actor: SessionPrincipal): Promise<{ actorRole: Role; name: string; kind: 'personal' | 'team' }> {
  const org = await tx.one(lockOrg, actor.orgId)
  const found = await tx.maybe(findMembership, actor.orgId, actor.userId)
  if (found === null) throw fail('forbidden', { message: 'You are no member of this organisation any more.' })
  return { ...org, actorRole: found.role }
}

async function keepAnOwner(tx: Tx, orgId: number): Promise<void> {
  if ((await tx.one(countOwners, orgId)).owners <= 1) throw fail('last_owner')
}
