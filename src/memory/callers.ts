/** Who a credential is for the rules of memory: its user space, the workspaces whose team it belongs to, the shares it is in. */
import type { Db } from '../platform/db.ts'
import type { BearerPrincipal } from '../platform/principal.ts'
import { findMemberships } from './caller-queries.ts'
import type { MemoryCaller } from './scopes.ts'

/** Path classes whose rules ask for memberships; the others are decided from the credential alone. */
const membershipRoots: readonly string[] = ['workspaces/', 'shared/']

/**
 * Looks up what the rules need to know of a caller. Memberships are read from the database at each call that needs them, so that a
 * revoke binds the next call on every process; calls under org/, users/ and agents/ need none.
 */
export class MemoryCallers {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** The caller as the rules of this key, or of this list prefix, need it. An agent token acts for the user of the key that minted it. */
  forKey(principal: BearerPrincipal, keyOrPrefix: string): MemoryCaller | Promise<MemoryCaller> {
    const isNeeded = membershipRoots.some(root => keyOrPrefix.startsWith(root) || root.startsWith(keyOrPrefix))
    return isNeeded ? this.of(principal) : { userSpace: userSpaceOf(principal), workspaceIds: [], sharedSpaces: [] }
  }

  /** The caller with all memberships. */
  async of(principal: BearerPrincipal): Promise<MemoryCaller> {
    const { workspaceIds, sharedSpaces } = await this.#db.one(findMemberships, principal.orgId, principal.userId, principal.workspaceId)
    return { userSpace: userSpaceOf(principal), workspaceIds, sharedSpaces }
  }
}

function userSpaceOf({ userId, keyId }: BearerPrincipal): string {
  return userId === null ? `key-${keyId}` : String(userId)
}
