/** Finds what the path rules of memory need to know about a credential: its user space, its workspaces, and its shares. */
import { type Db, statement } from '../../platform/db/db.ts'
import type { Principal } from '../../platform/security/principal.ts'
import type { MemoryCaller } from './path-rules.ts'

/** Path classes whose rules need memberships. The other classes are decided from the credential alone. */
const membershipRoots: readonly string[] = ['workspaces/', 'shared/']

/**
 * Looks up what the path rules need to know about a caller. Each call that needs memberships reads them from the database, so a revocation applies to the
 * next call on every process. Calls under org/, users/ and agents/ need no memberships.
 */
export class MemoryCallers {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /**
   * Returns what the rules for this key, or for this list prefix, need to know about the caller. An agent token acts for the user of the key that minted
   * it. A session acts for its person.
   */
  forKey(principal: Principal, keyOrPrefix: string): MemoryCaller | Promise<MemoryCaller> {
    const isNeeded = membershipRoots.some(root => keyOrPrefix.startsWith(root) || root.startsWith(keyOrPrefix))
    return isNeeded ? this.of(principal) : { userSpace: userSpaceOf(principal), workspaceIds: [], sharedSpaces: [] }
  }

  /** Returns the caller with all memberships. */
  async of(principal: Principal): Promise<MemoryCaller> {
    const { workspaceIds, sharedSpaces } = await this.#db.one(findMemberships, principal.orgId, principal.userId, workspaceOf(principal))
    return { userSpace: userSpaceOf(principal), workspaceIds, sharedSpaces }
  }
}

function userSpaceOf(principal: Principal): string {
  return principal.kind !== 'session' && principal.userId === null ? `key-${principal.keyId}` : String(principal.userId)
}

/** Returns the workspace of the API key. A session has none, so a person at the console has the rights of a full key that is bound to no workspace. */
function workspaceOf(principal: Principal): number | null {
  return principal.kind === 'session' ? null : principal.workspaceId
}

/**
 * Returns the workspaces and the shared spaces that the caller may use. The workspaces are those that are not archived and whose team contains the user.
 * The workspace of the API key comes first. It also counts when no user owns the key, or when the user is an admin or owner. For a member only the team
 * counts, so a person who was removed from a team has no access through a key. The spaces are the active ones that the user owns or was granted. A user who
 * is not an active member gets neither workspaces nor spaces.
 */
const findMemberships = statement<[orgId: number, userId: number | null, workspaceId: number | null], { workspaceIds: number[]; sharedSpaces: string[] }>(
  'memory.find_memberships',
  `select
     array(select w.id from workspaces w
       where w.org_id = $1::int and w.archived_at is null and (
         (w.id = $3::int and $2::int is null)
         or exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active' and (
           (w.id = $3::int and m.role in ('admin', 'owner'))
           or exists (select 1 from workspace_members t where t.org_id = $1::int and t.workspace_id = w.id and t.user_id = $2::int))))
       order by w.id is distinct from $3::int, w.id) as "workspaceIds",
     array(select mine.space from (
         select s.space from memory_shares s where s.org_id = $1::int and s.owner_id = $2::int and s.state = 'active'
         union
         select s.space from memory_share_members g join memory_shares s on s.org_id = g.org_id and s.space = g.space and s.state = 'active'
         where g.org_id = $1::int and g.user_id = $2::int) mine
       where exists (select 1 from org_members m where m.org_id = $1::int and m.user_id = $2::int and m.status = 'active')
       order by mine.space) as "sharedSpaces"`,
)
