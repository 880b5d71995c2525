/** Brings memberships, roles and workspaces into line with what an issuer says about a person who signs in. Decision 0887 gives the reasons. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../../platform/db/db-control-log.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Role } from '../../../platform/security/principal.ts'
import { countPeople, decideInvitation, lockOrg } from '../members/member-queries.ts'
import { memberChanged, setRoleIn } from '../members/members.ts'
import { workspaceChanged } from '../workspaces/workspaces.ts'
import {
  activeWorkspacesAmong,
  dropGrant,
  enterWorkspaces,
  findAnyMembership,
  findGrant,
  findInvitationTo,
  findRules,
  type GivenRole,
  type GrantRow,
  joinBySignIn,
  listGrantOrgs,
  putGrant,
  quitWorkspaces,
  type RulesRow,
  workspacesOfMember,
} from './joining-queries.ts'
import { initialRules } from './sign-in-rules.ts'

/** What an issuer says about a person who has just signed in. */
export interface Affiliation {
  /** The id of the issuer. */
  readonly issuer: string
  /** The verified address. */
  readonly email: string
  /** The organisation for which the operator has claimed the domain of the address, for this issuer. */
  readonly orgId: number | null
  readonly groups: readonly string[]
}

/** A change that a sign-in made, for the audit trail of the organisation. */
export interface SignInChange {
  readonly orgId: number
  readonly act: 'joinBySignIn' | 'changeRoleBySignIn' | 'changeWorkspacesBySignIn'
  readonly target: string
}

export interface SignInGrantsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly controlLog: ControlLog
  /** The setting MEMBERS_MAX. */
  readonly membersMax: number
  /** Writes a line of the audit trail in the transaction of the change. */
  recordIn(tx: Tx, change: SignInChange, origin: Origin): Promise<void>
  /** Writes a line about a person who could not join because the organisation is full. */
  recordFull(change: SignInChange, origin: Origin): Promise<void>
}

/** The request of the sign-in. */
export interface Origin {
  readonly sourceIp: string
  readonly requestId: string
}

interface Given {
  readonly role: GivenRole | null
  readonly workspaceIds: readonly number[]
}

const nothing: Given = { role: null, workspaceIds: [] }

export class SignInGrants {
  readonly #deps: SignInGrantsDeps
  constructor(deps: SignInGrantsDeps) {
    this.#deps = deps
  }

  /**
   * Joins the person to the organisation of the domain, and gives and takes away what groups give there. In every other organisation, it takes away what
   * earlier sign-ins at this issuer gave. Throws `member_cap` when the organisation is full and the person is in no other.
   */
  async apply(userId: number, affiliation: Affiliation, origin: Origin, isMemberSomewhere: () => Promise<boolean>): Promise<void> {
    const { issuer, orgId } = affiliation
    const before = (await this.#deps.db.many(listGrantOrgs, userId, issuer)).map(row => row.orgId)
    for (const other of before) if (other !== orgId) await this.#applyIn(other, userId, { ...affiliation, orgId: null }, origin)
    if (orgId === null) return
    try {
      await this.#applyIn(orgId, userId, affiliation, origin)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.errorName !== 'member_cap') throw error
      await this.#deps.recordFull({ orgId, act: 'joinBySignIn', target: targetOf(userId, issuer) }, origin)
      // A full organisation must not keep a person out of the others.
      if (!(await isMemberSomewhere())) throw error
    }
  }

  async #applyIn(orgId: number, userId: number, affiliation: Affiliation, origin: Origin): Promise<void> {
    const { controlLog, clock, log, recordIn } = this.#deps
    const now = new Date(clock.nowMs())
    await controlLog.change(async tx => {
      const done = { value: undefined, news: [] as NewsItem[] }
      const org = await tx.maybe(lockOrg, orgId)
      if (org === null || org.kind === 'personal') {
        log.warn('claimed_organisation_not_usable', { provider: affiliation.issuer, orgId })
        return done
      }
      const isClaimed = affiliation.orgId === orgId
      const rules = (await tx.maybe(findRules, orgId, affiliation.issuer)) ?? initialRules
      const given = isClaimed ? await this.#given(tx, orgId, rules, affiliation.groups) : nothing
      const change = new Change({ tx, orgId, userId, issuer: affiliation.issuer, now, record: line => recordIn(tx, line, origin) })
      const member = await tx.maybe(findAnyMembership, orgId, userId)
      // Who was removed, or has left, comes back by an invitation only.
      if (member?.isActive === false) return done
      if (member === null && !isClaimed) return done
      const role = member?.role ?? (await this.#join(change, affiliation.email, given.role ?? rules.defaultRole))
      if (role === null) return done
      const grant = (await tx.maybe(findGrant, orgId, userId, affiliation.issuer)) ?? nothing
      await change.apply({ role, given, grant, defaultRole: rules.defaultRole })
      return { value: undefined, news: change.news }
    })
  }

  /** Returns what the groups give: the highest role of their rules, and the active workspaces of all. Groups are compared exactly. */
  async #given(tx: Tx, orgId: number, { groups: rules }: Omit<RulesRow, 'issuer'>, groups: readonly string[]): Promise<Given> {
    const held = new Set(groups)
    const matching = rules.filter(({ group }) => held.has(group))
    const roles = matching.map(({ role }) => role)
    const ids = [...new Set(matching.flatMap(({ workspaceIds }) => workspaceIds))]
    const active = ids.length === 0 ? [] : await tx.many(activeWorkspacesAmong, orgId, ids)
    return { role: roles.includes('admin') ? 'admin' : roles.includes('member') ? 'member' : null, workspaceIds: active.map(({ id }) => id) }
  }

  /**
   * Makes the person a member, and returns the role. An open invitation is taken up, and its role has priority over the default. Returns null for an
   * invitation as owner, which only the person accepts. Throws `member_cap`.
   */
  async #join(change: Change, email: string, role: GivenRole): Promise<Role | null> {
    const { tx, orgId, userId, now } = change.at
    const { membersMax } = this.#deps
    const invitation = await tx.maybe(findInvitationTo, orgId, email)
    if (invitation?.role === 'owner') return null
    if (invitation !== null) await tx.one(decideInvitation, orgId, invitation.id, 'accepted', now)
    const { members, pending } = await tx.one(countPeople, orgId)
    if (members + pending >= membersMax)
      throw fail('member_cap', { message: `Your organisation here is full: ${membersMax} members and open invitations. Ask its owners to make room.` })
    const joined = invitation?.role ?? role
    await tx.exec(joinBySignIn, orgId, userId, joined, now)
    change.news.push(memberChanged(orgId, userId))
    await change.record('joinBySignIn', `role=${joined}`)
    return joined
  }
}

interface ChangePlace {
  readonly tx: Tx
  readonly orgId: number
  readonly userId: number
  readonly issuer: string
  readonly now: Date
  readonly record: (line: SignInChange) => Promise<void>
}

/** The changes of one membership in one transaction, which has locked the organisation. */
class Change {
  readonly at: ChangePlace
  readonly news: NewsItem[] = []
  constructor(at: ChangePlace) {
    this.at = at
  }

  record(act: SignInChange['act'], what: string): Promise<void> {
    const { record, orgId, userId, issuer } = this.at
    return record({ orgId, act, target: `${targetOf(userId, issuer)} ${what}` })
  }

  async apply(state: { readonly role: Role; readonly given: Given; readonly grant: GrantRow; readonly defaultRole: GivenRole }): Promise<void> {
    const { tx, orgId, userId, issuer, now } = this.at
    const role = await this.#applyRole(state)
    const workspaceIds = await this.#applyWorkspaces(state)
    if (role === null && workspaceIds.length === 0) await tx.exec(dropGrant, orgId, userId, issuer)
    else await tx.exec(putGrant, orgId, userId, issuer, role, workspaceIds, now)
  }

  /** Returns the role that the person has because of groups. An owner keeps the role, which only people give and take. */
  async #applyRole({ role, given, grant, defaultRole }: Parameters<Change['apply']>[0]): Promise<GivenRole | null> {
    if (role === 'owner') return null
    const { tx, orgId, userId, now } = this.at
    const wanted = given.role ?? (grant.role === null ? role : defaultRole)
    if (wanted !== role) {
      await setRoleIn(tx, orgId, userId, wanted, now)
      this.news.push(memberChanged(orgId, userId))
      await this.record('changeRoleBySignIn', `role=${wanted}`)
    }
    return given.role
  }

  /** Returns the workspaces that the person has because of groups. A workspace that somebody gave by hand is not taken away. */
  async #applyWorkspaces({ given, grant }: Parameters<Change['apply']>[0]): Promise<readonly number[]> {
    const { tx, orgId, userId, now } = this.at
    const known = [...new Set([...given.workspaceIds, ...grant.workspaceIds])]
    if (known.length === 0) return []
    const inside = new Set((await tx.many(workspacesOfMember, orgId, userId, known)).map(({ id }) => id))
    const added = given.workspaceIds.filter(id => !inside.has(id))
    const removed = grant.workspaceIds.filter(id => inside.has(id) && !given.workspaceIds.includes(id))
    if (added.length > 0) await tx.exec(enterWorkspaces, orgId, userId, added, now)
    if (removed.length > 0) await tx.exec(quitWorkspaces, orgId, userId, removed)
    for (const id of [...added, ...removed]) this.news.push({ kind: workspaceChanged, ref: String(id) })
    if (added.length + removed.length > 0)
      await this.record('changeWorkspacesBySignIn', `added=${added.join(',') || 'none'} removed=${removed.join(',') || 'none'}`)
    return given.workspaceIds.filter(id => added.includes(id) || grant.workspaceIds.includes(id))
  }
}

const targetOf = (userId: number, issuer: string): string => `user=${userId} provider=${issuer}`
