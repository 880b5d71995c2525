import type { SessionPrincipal } from '../../platform/security/principal.ts'

/** Who may receive a hint: everyone in the organisation, its owners and admins, or these and one person. */
export type Audience = 'everyone' | 'admins' | { readonly person: number | null }

/** Returns whether a session is in the audience. The caller has compared the organisation. */
export function isIn({ role, userId }: SessionPrincipal, audience: Audience): boolean {
  if (audience === 'everyone' || role !== 'member') return true
  return audience !== 'admins' && audience.person === userId
}

/** Returns whether two principals of one session have the same rights. */
export function hasSameRights(one: SessionPrincipal, other: SessionPrincipal): boolean {
  return (
    one.orgId === other.orgId &&
    one.userId === other.userId &&
    one.role === other.role &&
    one.capabilities.length === other.capabilities.length &&
    one.capabilities.every(capability => other.capabilities.includes(capability))
  )
}
