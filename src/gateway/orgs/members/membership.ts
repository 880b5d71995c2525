/** Functions about members that other domains call inside their own transactions. */
import type { Tx } from '../../../platform/db/db.ts'
import { activeAmong } from '../workspaces/workspace-queries.ts'
import { findMembership, lockOrg, type MembershipRow } from './member-queries.ts'

/** Locks the members of the organisation: nobody joins or leaves until the transaction ends. */
export async function lockMembers(tx: Tx, orgId: number): Promise<void> {
  await tx.one(lockOrg, orgId)
}

/** Returns the role and capabilities of an active member. Null for everybody else. */
export function membershipOf(tx: Tx, orgId: number, userId: number): Promise<MembershipRow | null> {
  return tx.maybe(findMembership, orgId, userId)
}

/** Returns those of the given user ids that are active members of the organisation. */
export async function activeMembersAmong(tx: Tx, orgId: number, userIds: readonly number[]): Promise<Set<number>> {
  return new Set((await tx.many(activeAmong, orgId, userIds)).map(row => row.userId))
}
