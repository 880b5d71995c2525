/**
 * Decides who may read and write which memory path. The caller passes the memberships. A path that no row of this table matches is denied. The functions
 * are pure.
 *
 * | path | readers | writers |
 * |---|---|---|
 * | org/records/ | everyone in the organisation | promotion only |
 * | workspaces/<id>/records/ | the workspace's team | promotion only |
 * | workspaces/<id>/journal/ | the workspace's team | the workspace's team |
 * | shared/<space>/ | owner and granted members | owner and granted members |
 * | users/<uid>/ | that user | that user |
 * | agents/ | any key, agent and person of the organisation | the same |
 */
import { fail } from '../../platform/errors.ts'

/** The facts about a caller that the rules need. */
export interface MemoryCaller {
  /** The folder under users/: the user id, or `key-<id>` for a key without a user. */
  readonly userSpace: string
  readonly workspaceIds: readonly number[]
  /** Spaces that the caller owns or was granted. Retired spaces are not among them. */
  readonly sharedSpaces: readonly string[]
}

type MemberOf = (caller: MemoryCaller, owner: string) => boolean

interface ScopeRow {
  /** Segments of the path class. `*` is the owner: a workspace, space or user. */
  readonly pattern: readonly string[]
  readonly reads: MemberOf
  readonly writes: MemberOf
  /** Returns the owners of this class that the caller may use. A class without owners gives ['']. */
  readonly owners: (caller: MemoryCaller) => readonly string[]
}

const everyone: MemberOf = () => true
/** No caller writes records. Promotion writes them without this check. */
const nobody: MemberOf = () => false
const inWorkspace: MemberOf = (caller, owner) => caller.workspaceIds.some(id => String(id) === owner)
const inSpace: MemberOf = (caller, owner) => caller.sharedSpaces.includes(owner)
const self: MemberOf = (caller, owner) => caller.userSpace === owner
const workspacesOf = (caller: MemoryCaller): string[] => caller.workspaceIds.map(String)
const single = (): string[] => ['']

const scopeTable: readonly ScopeRow[] = [
  { pattern: ['org', 'records'], reads: everyone, writes: nobody, owners: single },
  { pattern: ['workspaces', '*', 'records'], reads: inWorkspace, writes: nobody, owners: workspacesOf },
  { pattern: ['workspaces', '*', 'journal'], reads: inWorkspace, writes: inWorkspace, owners: workspacesOf },
  { pattern: ['shared', '*'], reads: inSpace, writes: inSpace, owners: caller => caller.sharedSpaces },
  { pattern: ['users', '*'], reads: self, writes: self, owners: caller => [caller.userSpace] },
  { pattern: ['agents'], reads: everyone, writes: everyone, owners: single },
]

export function mayRead(caller: MemoryCaller, key: string): boolean {
  const found = rowOf(key)
  return found?.row.reads(caller, found.owner) === true
}

export function mayWrite(caller: MemoryCaller, key: string): boolean {
  const found = rowOf(key)
  return found?.row.writes(caller, found.owner) === true
}

/** Returns every prefix that the caller may read, each with its trailing slash. */
export function readablePrefixes(caller: MemoryCaller): string[] {
  return scopeTable.flatMap(row =>
    row
      .owners(caller)
      .filter(owner => row.reads(caller, owner))
      .map(owner => `${row.pattern.map(part => (part === '*' ? owner : part)).join('/')}/`),
  )
}

/**
 * Returns the prefixes to list for a requested prefix. A prefix inside a readable scope is returned as it is. For a broader prefix the result is the
 * readable scopes below it. Throws `forbidden` when the caller may read nothing under the prefix, whether or not objects exist there.
 */
export function listPrefixes(caller: MemoryCaller, asked: string): string[] {
  const found = readablePrefixes(caller).flatMap(scope => (asked.startsWith(scope) ? [asked] : scope.startsWith(asked) ? [scope] : []))
  if (found.length === 0)
    throw fail('forbidden', { message: 'Nothing under this prefix is readable for this credential. GET /v1/me/memory/paths lists what is.' })
  return found
}

/** Returns the body of `GET /v1/me/memory/paths`. The body does not list `agents/`, because every key may use it. */
export function pathsOf(caller: MemoryCaller): { user: string; workspace?: string; org: string; shared?: string[] } {
  const [workspaceId] = caller.workspaceIds
  return {
    user: `users/${caller.userSpace}/`,
    ...(workspaceId === undefined ? {} : { workspace: `workspaces/${workspaceId}/` }),
    org: 'org/',
    ...(caller.sharedSpaces.length === 0 ? {} : { shared: caller.sharedSpaces.map(space => `shared/${space}/`) }),
  }
}

/** Returns the folder of every workspace whose team the caller is in. */
export function workspacePathsOf({ workspaceIds }: MemoryCaller): string[] {
  return workspaceIds.map(id => `workspaces/${id}/`)
}

/** Returns whether the key is under a workspace's journal. Entries of a journal expire. */
export function isJournalKey(key: string): boolean {
  return /^workspaces\/[^/]+\/journal\/./.test(key)
}

const dayMs = 86_400_000

/** Returns whether a journal entry has expired, because it was written more than `ttlDays` ago. Other keys never expire. */
export function isExpired(key: string, writtenMs: number, ttlDays: number, nowMs: number): boolean {
  return isJournalKey(key) && nowMs - writtenMs > ttlDays * dayMs
}

/** Returns the rule for a key that is strictly below its scope, with the owner that the path names. */
function rowOf(key: string): { row: ScopeRow; owner: string } | null {
  const segments = key.split('/')
  for (const row of scopeTable) {
    if (segments.length <= row.pattern.length) continue
    if (!row.pattern.every((part, at) => part === '*' || part === segments[at])) continue
    return { row, owner: segments[row.pattern.indexOf('*')] ?? '' }
  }
  return null
}
