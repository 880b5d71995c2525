import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { ExpiringCache } from '../../platform/loop/expiring-cache.ts'
import type { Role } from '../../platform/security/principal.ts'
import { cleanName } from '../../platform/values/clean-name.ts'
import { cleanEmail } from '../../platform/values/email-address.ts'
import { companyDomain } from './members/mail-domain.ts'
import {
  anyOrg,
  findFirstOwner,
  findMemberRole,
  findOrg,
  findUserByEmail,
  insertMember,
  insertOrg,
  insertUser,
  listMembers,
  type MemberRow,
  type OrgRow,
  type UserRow,
} from './queries.ts'

export type Org = OrgRow
export type User = UserRow
export type Member = MemberRow

export interface OrgsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  /** The setting CACHE_TTL_MS. */
  readonly cacheTtlMs: number
}

/** The `kind` of the control-log item for a changed name or setting of an organisation. The item's `ref` is the organisation's id. */
export const orgChanged = 'org_changed'

const orgsCachedMax = 20_000
/** Maximum number of members in one list. */
const membersListedMax = 1_000

/** Organisations and the people in them. */
export class Orgs {
  readonly #deps: OrgsDeps
  readonly #orgs: ExpiringCache<number, Org>

  constructor(deps: OrgsDeps) {
    this.#deps = deps
    this.#orgs = new ExpiringCache({ max: orgsCachedMax, ttlMs: deps.cacheTtlMs, clock: deps.clock, load: orgId => deps.db.maybe(findOrg, orgId) })
    deps.controlLog.on(news => {
      if (news.kind === orgChanged) this.#orgs.invalidate(Number(news.ref))
    })
    deps.controlLog.onGap(() => this.#orgs.clear())
  }

  /** Makes an organisation. Its owner is the person with this address. When there is no such person, a user is made. Throws `bad_name` and `bad_request`. */
  async createOrg(params: { name: string; ownerEmail: string; kind?: Org['kind'] }): Promise<{ orgId: number; userId: number }> {
    const name = cleanName(params.name)
    const email = cleanEmail(params.ownerEmail)
    if (email === null) throw fail('bad_request', { message: 'The e-mail address is not valid.' })
    const kind = params.kind ?? 'team'
    const now = new Date(this.#deps.clock.nowMs())
    return this.#deps.db.tx(async tx => {
      await tx.exec(insertUser, email, now)
      const user = await tx.one(findUserByEmail, email)
      const org = await tx.one(insertOrg, name, kind, kind === 'team' ? companyDomain(email) : null, now)
      await tx.exec(insertMember, org.id, user.id, 'owner', now)
      return { orgId: org.id, userId: user.id }
    })
  }

  /** Returns the person with this address in upper or lower case, or null. */
  findUser(email: string): Promise<User | null> {
    return this.#deps.db.maybe(findUserByEmail, email.trim())
  }

  /** Returns the organisation or null. The result is cached. This process sees a change immediately, and others see it within a second. */
  find(orgId: number): Org | null | Promise<Org | null> {
    return this.#orgs.get(orgId)
  }

  /** Returns whether the installation has no organisation yet. */
  async isEmpty(): Promise<boolean> {
    return (await this.#deps.db.maybe(anyOrg)) === null
  }

  /** Returns the address of the owner of the oldest organisation, or null when there is none. */
  async firstOwner(): Promise<string | null> {
    return (await this.#deps.db.maybe(findFirstOwner))?.email ?? null
  }

  /** Returns the user id of the member with this address. Throws `not_found`. */
  async memberId(orgId: number, email: string): Promise<number> {
    const user = await this.findUser(email)
    if (user === null || (await this.roleOf(orgId, user.id)) === null) throw fail('not_found', { message: `${email} is no member of organisation ${orgId}.` })
    return user.id
  }

  /** Returns the role of an active member, or null. */
  async roleOf(orgId: number, userId: number): Promise<Role | null> {
    return (await this.#deps.db.maybe(findMemberRole, orgId, userId))?.role ?? null
  }

  /** Returns the active members, oldest account first, at most 1,000. */
  members(orgId: number): Promise<Member[]> {
    return this.#deps.db.many(listMembers, orgId, membersListedMax)
  }
}

/** Returns the organisations service. */
export function createOrgs(deps: OrgsDeps): Orgs {
  return new Orgs(deps)
}
