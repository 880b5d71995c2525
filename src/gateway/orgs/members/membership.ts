/** What other domains ask about the people of an organisation, inside their own transactions. */
import type { Tx } from '../../../platform/db/db.ts'
import { activeAmong } from '../workspaces/workspace-queries.ts'
import { findMembership, lockOrg, type MembershipRow } from './member-queries.ts'

/** Nobody joins or leaves the organisation until the transaction ends. */
export async function lockMembers(tx: Tx, orgId: number): Promise<void> {
  await tx.one(lockOrg, orgId)
}

/** The role and capabilities of an active member; null for everybody else. */
export function membershipOf(tx: Tx, orgId: number, userId: number): Promise<MembershipRow | null> {
  return tx.maybe(findMembership, orgId, userId)
}

/** Those of the people who are active members of the organisation, by user id. */
export async function activeMembersAmong(tx: Tx, orgId: number, userIds: readonly number[]): Promise<Set<number>> {
  return new Set((await tx.many(activeAmong, orgId, userIds)).map(row => row.userId))
}
