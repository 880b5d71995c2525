/**
 * Shares: spaces under shared/. The owner of a share opens it to individual members of the same organisation, until the share is retired. Decision 0210
 * says why.
 */
import { activeMembersAmong, lockMembers, membershipOf } from '../../gateway/orgs/members/membership.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import { fail } from '../../platform/errors.ts'
import {
  countShares,
  deleteGrant,
  deleteGrants,
  findShare,
  insertGrants,
  insertShare,
  type KnownShareRow,
  listShares,
  retireShare,
  type ShareRow,
} from './share-queries.ts'

/** The person who acts. Credentials without a user were already refused. */
export interface ShareActor {
  readonly orgId: number
  readonly userId: number
}

/** A share in the form that one person sees. */
export interface ShareView {
  /** The id, for the audit trail. */
  readonly id: number
  readonly space: string
  readonly owner: number
  readonly member_uids: number[]
  /** `manager` means an owner or admin of the organisation who is not in the share. A manager cannot read its data. */
  readonly role: 'owner' | 'member' | 'manager'
}

/** The name of a space consists of small letters, digits and hyphens, so that no two names look alike. The project chose this rule. */
const slug = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
/** Names that would look like another scope in a path. */
const reservedNames: readonly string[] = ['agents', 'journal', 'org', 'records', 'shared', 'users', 'workspaces']

/** Maximum number of grants of one share. The project chose this number and those below. */
export const shareMembersMax = 500
/** Maximum number of open shares that one person may own. The next constant is the maximum of one organisation. */
const ownSharesMax = 100
const orgSharesMax = 1_000
/** Maximum number of shares that one organisation ever had. Retired shares count, because their names are never used again. */
const everSharesMax = 10_000

const noShare = () => fail('not_found', { message: 'There is no share of that name. GET /v1/me/memory/shares lists yours.' })

/**
 * Manages shares. Changes run one after the other under the lock on the organisation. Changes of memberships take the same lock, so a person who is leaving
 * cannot get a grant. Each call reads the caller's rights from the same tables, so a change applies to the next call on every process.
 */
export class Shares {
  readonly #db: Db
  readonly #clock: Clock

  constructor({ db, clock }: { readonly db: Db; readonly clock: Clock }) {
    this.#db = db
    this.#clock = clock
  }

  /**
   * Returns a page of the shares that the person owns or belongs to, in the order of their names. With `isAll` the page contains every open share of the
   * organisation. For a null user the list is empty. Throws `bad_request`.
   */
  async list(
    orgId: number,
    userId: number | null,
    page: { readonly isAll: boolean; readonly limit: number; readonly cursor: string | undefined },
  ): Promise<{ shares: ShareView[]; next_cursor: string | null }> {
    const { isAll, limit, cursor = '' } = page
    if (cursor !== '' && !slug.test(cursor)) throw fail('bad_request', { message: 'That cursor is not one of ours. Send next_cursor of the page before.' })
    const rows = await this.#db.many(listShares, orgId, userId, isAll, cursor, limit + 1)
    const shown = rows.slice(0, limit)
    return { shares: shown.map(row => viewOf(row, userId)), next_cursor: rows.length > limit ? (shown.at(-1)?.space ?? null) : null }
  }

  /**
   * Creates a share that the actor owns. If the actor already owns the share, missing grants are added and no grant is removed. All grants succeed or fail
   * together. Throws `bad_name`, `bad_request` when a user is not an active member, `space_taken`, `space_retired`, `cap`, `forbidden`.
   */
  async create(actor: ShareActor, space: string, memberUids: readonly number[]): Promise<{ share: ShareView; isNew: boolean }> {
    const { orgId, userId } = actor
    checkName(space)
    return this.#change(actor, async tx => {
      const known = await tx.maybe(findShare, orgId, space)
      if (known?.state === 'retired') throw fail('space_retired')
      if (known !== null && known.ownerId !== userId) throw fail('space_taken')
      if (known === null) {
        await this.#checkRoom(tx, actor)
        await tx.exec(insertShare, orgId, space, userId, this.#now())
      }
      const others = [...new Set(memberUids)].filter(uid => uid !== userId)
      const active = await activeMembersAmong(tx, orgId, others)
      const stranger = others.find(uid => !active.has(uid))
      if (stranger !== undefined)
        throw fail('bad_request', {
          message: `member_uids: there is no active member with the id ${stranger}. GET /me/members lists them. Nothing was granted.`,
        })
      return { share: viewOf(await this.#grant(tx, actor, space, others), userId), isNew: known === null }
    })
  }

  /**
   * Grants access to one member. A second grant changes nothing. Throws `not_found` when there is no such share or active member, `forbidden`,
   * `space_retired`, `cap`.
   */
  async grant(actor: ShareActor, space: string, memberUid: number | null): Promise<ShareView> {
    return this.#manage(actor, space, async (tx, known) => {
      if (known.state === 'retired') throw fail('space_retired')
      if (memberUid === null || !(await activeMembersAmong(tx, actor.orgId, [memberUid])).has(memberUid))
        throw fail('not_found', { message: 'There is no active member of that id. GET /me/members lists them.' })
      return viewOf(await this.#grant(tx, actor, space, memberUid === known.ownerId ? [] : [memberUid]), actor.userId)
    })
  }

  /** Removes a grant. Without a grant nothing changes. Throws `not_found` when there is no such share, `forbidden`, `share_owner`. */
  async revoke(actor: ShareActor, space: string, memberUid: number | null): Promise<ShareView> {
    return this.#manage(actor, space, async (tx, known) => {
      if (memberUid === known.ownerId) throw fail('share_owner')
      if (memberUid !== null) await tx.exec(deleteGrant, actor.orgId, space, memberUid)
      return viewOf(await tx.one(findShare, actor.orgId, space), actor.userId)
    })
  }

  /**
   * Closes a share permanently. All grants end, and nobody has access any more. Its name is never used again, and its objects stay in the bucket. A second
   * call changes nothing. Throws `not_found`, `forbidden`.
   */
  async retire(actor: ShareActor, space: string): Promise<ShareView> {
    return this.#manage(actor, space, async tx => {
      await tx.exec(retireShare, actor.orgId, space, this.#now())
      await tx.exec(deleteGrants, actor.orgId, space)
      return viewOf(await tx.one(findShare, actor.orgId, space), actor.userId)
    })
  }

  /** Runs a change with the present role of the actor. Throws `forbidden` for an actor who has left since the credential was checked. */
  #change<T>({ orgId, userId }: ShareActor, work: (tx: Tx, isManager: boolean) => Promise<T>): Promise<T> {
    return this.#db.tx(async tx => {
      await lockMembers(tx, orgId)
      const membership = await membershipOf(tx, orgId, userId)
      if (membership === null) throw fail('forbidden', { message: 'The user of this key is no member of the organisation any more.' })
      return work(tx, membership.role !== 'member')
    })
  }

  /** Runs a change of an existing share. The owner of the share may change it, and so may owners and admins of the organisation. */
  #manage<T>(actor: ShareActor, space: string, work: (tx: Tx, known: KnownShareRow) => Promise<T>): Promise<T> {
    return this.#change(actor, async (tx, isManager) => {
      // A text that is not a valid name is the name of no share.
      const known = slug.test(space) ? await tx.maybe(findShare, actor.orgId, space) : null
      if (known === null) throw noShare()
      if (known.ownerId !== actor.userId && !isManager)
        throw fail('forbidden', { message: 'Only the owner of a share, and owners and admins of the organisation, change who is in it.' })
      return work(tx, known)
    })
  }

  async #grant(tx: Tx, { orgId, userId }: ShareActor, space: string, memberUids: readonly number[]): Promise<ShareRow> {
    if (memberUids.length > 0) await tx.exec(insertGrants, orgId, space, memberUids, userId, this.#now())
    const share = await tx.one(findShare, orgId, space)
    if (share.memberUids.length > shareMembersMax)
      throw fail('cap', { message: `A share has at most ${shareMembersMax} members. Revoke somebody first. Nothing was granted.` })
    return share
  }

  async #checkRoom(tx: Tx, { orgId, userId }: ShareActor): Promise<void> {
    const { own, active, ever } = await tx.one(countShares, orgId, userId)
    if (own >= ownSharesMax) throw fail('cap', { message: `One person owns at most ${ownSharesMax} open shares. Retire one first.` })
    if (active >= orgSharesMax) throw fail('cap', { message: `An organisation has at most ${orgSharesMax} open shares. Retire one first.` })
    if (ever >= everSharesMax)
      throw fail('cap', { message: `An organisation makes at most ${everSharesMax} shares, retired ones included. Use one that is open.` })
  }

  #now(): Date {
    return new Date(this.#clock.nowMs())
  }
}

function checkName(space: string): void {
  if (!slug.test(space))
    throw fail('bad_name', { message: 'A space has 1 to 64 small letters, digits and hyphens, and begins and ends with a letter or digit.' })
  if (reservedNames.includes(space)) throw fail('bad_name', { message: `"${space}" names a scope of memory and can be no space. Choose another name.` })
}

function viewOf({ id, space, ownerId, memberUids }: ShareRow, userId: number | null): ShareView {
  const role = ownerId === userId ? 'owner' : userId !== null && memberUids.includes(userId) ? 'member' : 'manager'
  return { id, space, owner: ownerId, member_uids: [...memberUids], role }
}
