import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import type { AgentPrincipal, SessionPrincipal } from '../../../platform/security/principal.ts'
import { cleanName } from '../../../platform/values/clean-name.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { companyDomain } from '../members/mail-domain.ts'
import { countPeople } from '../members/member-queries.ts'
import type { Org, Orgs } from '../orgs.ts'
import { insertMember } from '../queries.ts'
import {
  countTeamsMade,
  findOwnOrg,
  findPerson,
  insertAttribution,
  insertTeam,
  listOwnOrgs,
  lockFounder,
  type OwnOrgRow,
  type PersonRow,
  updatePerson,
} from './account-queries.ts'

export type OwnOrg = OwnOrgRow
export type Person = PersonRow

export interface AccountsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly orgs: Orgs
  /** The setting TEAM_ORGS_MAX. */
  readonly teamOrgsMax: number
  /** Moves a session to another organisation. Resolves to false when the person is not a member there. */
  moveSession(sessionId: string, orgId: number): Promise<boolean>
}

const orgsListedMax = 1_000

/** What the signed-in person reads and changes about their account: profile, organisations, and the organisation of their session. */
export class Accounts {
  readonly #deps: AccountsDeps

  constructor(deps: AccountsDeps) {
    this.#deps = deps
  }

  /** Returns the person, or null for a caller without a user, and the organisation in which the caller works. Throws `not_found`. */
  async view(userId: number | null, orgId: number): Promise<{ person: Person | null; org: Org }> {
    const { db, orgs } = this.#deps
    const [person, org] = await Promise.all([userId === null ? null : db.maybe(findPerson, userId), orgs.find(orgId)])
    if (org === null) throw fail('not_found', { message: 'There is no such organisation.' })
    return { person, org }
  }

  /** Sets the display name, or removes the picture. Without a name, the display name does not change. Throws `bad_name`. */
  async update(userId: number, params: { name?: string; dropsAvatar: boolean }): Promise<void> {
    await this.#deps.db.exec(updatePerson, userId, params.name === undefined ? null : cleanName(params.name), params.dropsAvatar)
  }

  /** Returns the organisations of the caller. An agent gets only the organisation in which it works. */
  async orgsOf(principal: SessionPrincipal | AgentPrincipal): Promise<OwnOrg[]> {
    const { db, orgs } = this.#deps
    if (principal.kind === 'session') return db.many(listOwnOrgs, principal.userId, orgsListedMax)
    const own = principal.userId === null ? null : await db.maybe(findOwnOrg, principal.orgId, principal.userId)
    if (own !== null) return [{ ...own, role: 'member' }]
    const org = await orgs.find(principal.orgId)
    return org === null ? [] : [{ id: org.id, name: org.name, kind: org.kind, role: 'member', memberCount: (await db.one(countPeople, org.id)).members }]
  }

  /** Makes a team organisation and makes the person its owner. Throws `bad_name` and `team_cap`. */
  async createTeam(userId: number, requested: string): Promise<OwnOrg> {
    const { db, clock, teamOrgsMax } = this.#deps
    const name = cleanName(requested)
    const now = new Date(clock.nowMs())
    return db.tx(async tx => {
      // The lock makes concurrent requests of one person run one after the other, so that together they cannot exceed the limit.
      const { email } = await tx.one(lockFounder, userId)
      if ((await tx.one(countTeamsMade, userId)).teams >= teamOrgsMax)
        throw fail('team_cap', { message: `You have made ${teamOrgsMax} team organisations, which is as many as one person may.` })
      const { id } = await tx.one(insertTeam, name, companyDomain(email), userId, now)
      await tx.exec(insertMember, id, userId, 'owner', now)
      return tx.one(findOwnOrg, id, userId)
    })
  }

  /** Moves the caller's session to another of the person's organisations. Throws `not_found`. */
  async switchOrg(principal: SessionPrincipal, requestedOrgId: number): Promise<OwnOrg> {
    const orgId = rowId(requestedOrgId)
    const isMoved = orgId !== null && (await this.#deps.moveSession(principal.sessionId, orgId))
    const org = isMoved ? await this.#deps.db.maybe(findOwnOrg, orgId, principal.userId) : null
    if (org === null) throw fail('not_found', { message: 'You are no member of such an organisation. GET /me/orgs lists yours.' })
    return org
  }

  /** Stores the person's answer about how they came here. Only the first answer is kept. */
  async attribute(userId: number, source: string, detail: string | null): Promise<void> {
    const { db, clock } = this.#deps
    await db.exec(insertAttribution, userId, source, detail, new Date(clock.nowMs()))
  }
}
