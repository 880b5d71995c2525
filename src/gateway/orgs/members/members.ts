/** The members of an organisation and their roles, and the end of a membership. Decision 0105 gives the reasons. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail } from '../../../platform/errors.ts'
import type { Flushable } from '../../../platform/flushable.ts'
import type { Capability, Role, SessionPrincipal } from '../../../platform/security/principal.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { Budgets } from '../../limits/budgets/budgets.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import { type MemberFilter, pageOfMembers } from './member-list.ts'
import {
  countOwners,
  endKeys,
  endMembership,
  endSessions,
  findMember,
  findMembership,
  forgetGrants,
  type ListedMemberRow,
  leaveShares,
  leaveWorkspaces,
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
  readonly budgets: Pick<Budgets, 'list'>
  /** Writes the charges that this process has counted to the database, so that the reported spend includes them. */
  readonly journal: Flushable
  /** Ends what other domains keep for a person, in the transaction that ends the membership. Returns the news. */
  onLeave(tx: Tx, orgId: number, userId: number): Promise<readonly NewsItem[]>
}

/** What an owner changes about a member. An absent field does not change. */
export interface MemberChange {
  readonly role?: Role
  readonly capabilities?: readonly Capability[]
}

/** What a member may spend and has spent in the present IST month, in micro-rupees. */
export interface MemberFigures {
  /** Null means no budget. */
  readonly capUinr: bigint | null
  readonly spentUinr: bigint
}

/**
 * Returns the news that a person's role or membership changed. Every process then reads the person's sessions and keys in the organisation
 * again.
 */
export function memberChanged(orgId: number, userId: number): NewsItem {
  return { kind: 'member_changed', ref: `${orgId}:${userId}` }
}

/**
 * Revokes every key of the person in the organisation and writes `key.revoked` events for webhooks. Returns the news that cut the running
 * calls of these keys.
 */
export async function endKeysOf(tx: Tx, ids: Ids, orgId: number, userId: number, now: Date): Promise<NewsItem[]> {
  const ended = await tx.many(endKeys, orgId, userId, now)
  const atMs = now.getTime()
  for (const { id, prefix, tier, scope } of ended)
    await emit(tx, { id: eventId(ids, atMs), orgId, type: 'key.revoked', atMs, data: { key_id: id, prefix, tier, scope } })
  return ended.map(({ id }): NewsItem => ({ kind: 'key_revoked', ref: String(id) }))
}

/** The roles that a member of each role may not invite. */
const beyondInviting: Readonly<Record<Role, readonly Role[]>> = { member: ['member', 'admin', 'owner'], admin: ['owner'], owner: [] }

const noMember = () => fail('not_found', { message: 'There is no such member. GET /me/members lists them.' })

/** The members of organisations. Every change locks the organisation, so that the organisation has an owner after each change. */
export class Members {
  readonly #deps: MembersDeps

  constructor(deps: MembersDeps) {
    this.#deps = deps
  }

  /** Returns a page of the members that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  list(orgId: number, filter: MemberFilter): Promise<{ members: readonly ListedMember[]; nextCursor: string | null }> {
    return pageOfMembers(this.#deps.db, orgId, filter)
  }

  /** Returns the budgets and the spend of these members, by user id. It sends one statement for any number of members. */
  async figures(orgId: number, userIds: readonly number[]): Promise<ReadonlyMap<number, MemberFigures>> {
    const { budgets, journal } = this.#deps
    if (userIds.length === 0) return new Map()
    await journal.flushNow()
    const refs = userIds.map(id => ({ scope: 'member' as const, scopeId: String(id) }))
    return new Map((await budgets.list(orgId, refs)).map(({ id, capUinr, spentUinr }) => [Number(id), { capUinr, spentUinr }]))
  }

  /**
   * Sets the role and the capabilities. They apply from the next call on. Withdraws open invitations that the person could no longer make. Only
   * owners may call it. Throws `forbidden`, `not_found`, `last_owner`.
   */
  change(actor: SessionPrincipal, userId: number, params: MemberChange): Promise<ListedMember> {
    const { orgId } = actor
    const now = new Date(this.#deps.clock.nowMs())
    return this.#deps.controlLog.change(async tx => {
      if ((await lockedOrg(tx, actor)).actorRole !== 'owner') throw fail('forbidden', { message: 'This needs the role owner.' })
      const before = await tx.maybe(findMembership, orgId, userId)
      if (before === null) throw noMember()
      if (before.role === 'owner' && params.role !== undefined && params.role !== 'owner') await keepAnOwner(tx, orgId)
      if (params.capabilities !== undefined) await tx.exec(updateMember, orgId, userId, null, params.capabilities)
      if (params.role !== undefined) await setRoleIn(tx, orgId, userId, params.role, now)
      return { value: await tx.one(findMember, orgId, userId), news: [memberChanged(orgId, userId)] }
    })
  }

  /**
   * Ends the actor's own membership or that of another member. Revokes the person's keys, which cuts running calls, and ends their sessions in the
   * organisation. Removes the person from workspaces and shares of memory. Withdraws the open invitations that the person made, because one of them
   * could bring the person back. Plain members may only leave. Admins may not remove owners. Throws `forbidden`, `not_found`, `last_owner`.
   */
  async remove(actor: SessionPrincipal, userId: number): Promise<void> {
    const { controlLog, clock, ids, onLeave } = this.#deps
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
      await tx.exec(forgetGrants, orgId, userId)
      await tx.exec(withdrawMadeBy, orgId, userId, beyondInviting.member, now)
      await tx.exec(endSessions, orgId, userId, now)
      const keys = await endKeysOf(tx, ids, orgId, userId, now)
      const others = await onLeave(tx, orgId, userId)
      await tx.exec(endMembership, orgId, userId)
      return { value: undefined, news: [memberChanged(orgId, userId), ...keys, ...others] }
    })
  }
}

/**
 * Locks the organisation and reads the actor's present role, because the role may have changed after the check of the session. Throws `forbidden`
 * when the actor is no longer a member.
 */
export async function lockedOrg(tx: Tx, actor: SessionPrincipal): Promise<{ actorRole: Role; name: string; kind: 'personal' | 'team' }> {
  const org = await tx.one(lockOrg, actor.orgId)
  const found = await tx.maybe(findMembership, actor.orgId, actor.userId)
  if (found === null) throw fail('forbidden', { message: 'You are no member of this organisation any more.' })
  return { ...org, actorRole: found.role }
}

/** Sets the role of a member, and withdraws the open invitations that the person could no longer make. The caller has locked the organisation. */
export async function setRoleIn(tx: Tx, orgId: number, userId: number, role: Role, now: Date): Promise<void> {
  await tx.exec(updateMember, orgId, userId, role, null)
  await tx.exec(withdrawMadeBy, orgId, userId, beyondInviting[role], now)
}

async function keepAnOwner(tx: Tx, orgId: number): Promise<void> {
  if ((await tx.one(countOwners, orgId)).owners <= 1) throw fail('last_owner')
}
