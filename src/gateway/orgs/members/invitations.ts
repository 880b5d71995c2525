/** Invitations. Owners and admins make them. The person to whom the address belongs accepts or declines them. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { Role, SessionPrincipal } from '../../../platform/security/principal.ts'
import { cleanEmail } from '../../../platform/values/email-address.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { Mail } from '../../mail/mail.ts'
import {
  countInvited,
  countPeople,
  decideInvitation,
  findActiveByEmail,
  findMembership,
  findOwnInvitation,
  findPending,
  findPendingByEmail,
  insertInvitation,
  joinOrg,
  listOwnInvitations,
  listPending,
  lockOrg,
  type OwnInvitationRow,
  type PendingRow,
} from './member-queries.ts'
import { endKeysOf, lockedOrg, memberChanged } from './members.ts'

export type Pending = PendingRow
export type OwnInvitation = OwnInvitationRow

export interface InvitationsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly controlLog: ControlLog
  readonly mail: Pick<Mail, 'enqueue'>
  /** The setting MEMBERS_MAX: the limit of members and open invitations together. */
  readonly membersMax: number
  readonly baseUrl: () => string
  /**
   * Writes the audit line when a person accepts or declines. That person works in another organisation. So without this call, the inviting
   * organisation could not read about the decision. It never throws.
   */
  onDecision(orgId: number, actor: SessionPrincipal, act: 'acceptInvitation' | 'declineInvitation', id: number): Promise<void>
}

/** What became of one address. */
export interface InvitationResult {
  readonly email: string
  readonly invitation?: Pending
  readonly error?: GatewayError
}

/** Maximum number of addresses that one call invites. */
export const invitedTogetherMax = 200
/** The errors that concern one address. The others concern every address of a call. */
const ofOneAddress: ReadonlySet<string> = new Set(['bad_email', 'already_member', 'already_invited', 'member_cap', 'rate_limit_exceeded'])
const listedMax = 1_000
const hourMs = 3_600_000
/**
 * Maximum number of invitations that an organisation may make in a day. The project chose the limit, because each invitation is a mail to somebody
 * who has not asked for it.
 */
const aDayMax = (membersMax: number): number => Math.max(100, 4 * membersMax)
const roles = ['member', 'admin', 'owner'] as const satisfies readonly Role[]

/** Returns the role with this name. Throws `bad_role`. */
export function roleOfName(name: string): Role {
  const role = roles.find(each => each === name)
  if (role === undefined) throw fail('bad_role', { message: `The role must be one of ${roles.join(', ')}.` })
  return role
}

const noPending = () => fail('not_found', { message: 'There is no open invitation of that id. GET /me/members lists them.' })
const noInvitation = () => fail('not_found', { message: 'You have no open invitation of that id. GET /me/invitations lists yours.' })

/** An invitation is open until it is accepted, declined or withdrawn. The first of these decides it. */
export class Invitations {
  readonly #deps: InvitationsDeps
  /** The people who invite several addresses in this process now. */
  readonly #inviting = new Set<number>()

  constructor(deps: InvitationsDeps) {
    this.#deps = deps
  }

  /** Returns the open invitations of an organisation, oldest first. `text` is a part of the address, or an id. */
  pending(orgId: number, { text, role }: { readonly text?: string | undefined; readonly role?: Role | undefined } = {}): Promise<Pending[]> {
    return this.#deps.db.many(listPending, orgId, listedMax, text ?? null, role ?? null)
  }

  /** Returns the open invitations to the person's address in upper or lower case. */
  ofPerson(userId: number): Promise<OwnInvitation[]> {
    return this.#deps.db.many(listOwnInvitations, userId, listedMax)
  }

  /**
   * Invites an address. The mail is sent if the transaction commits, and at most once an hour from one organisation to one address. Throws
   * `bad_email`, `bad_role`, `personal_org`, `already_member`, `already_invited`, `member_cap`, `rate_limit_exceeded` and `forbidden`.
   */
  async invite(actor: SessionPrincipal, params: { email: string; role: string }): Promise<Pending> {
    const { db, clock } = this.#deps
    const { orgId } = actor
    const email = cleanEmail(params.email)
    if (email === null) throw fail('bad_email')
    const role = roleOfName(params.role)
    const now = new Date(clock.nowMs())
    return db.tx(async tx => {
      const { actorRole, kind, name } = await lockedOrg(tx, actor)
      if (actorRole === 'member') throw fail('forbidden', { message: 'This needs the role owner or admin.' })
      if (role === 'owner' && actorRole !== 'owner') throw fail('bad_role', { message: 'Only an owner invites an owner. Invite as admin or member.' })
      if (kind === 'personal') throw fail('personal_org')
      if ((await tx.maybe(findActiveByEmail, orgId, email)) !== null) throw fail('already_member')
      if ((await tx.maybe(findPendingByEmail, orgId, email)) !== null) throw fail('already_invited')
      await this.#checkRoom(tx, orgId)
      await this.#checkPace(tx, orgId)
      const made = await tx.one(insertInvitation, orgId, email, role, actor.userId, now)
      await this.#notify(tx, actor, made, name, now)
      return made
    })
  }

  /**
   * Invites several addresses with one role, each in a transaction of its own, so that no transaction is long. An address that cannot be invited has its
   * error as the result. Throws `bad_role`, `personal_org` and `forbidden`, which concern every address. Throws `rate_limit_exceeded` while another such call
   * of the person runs: one call makes hundreds of transactions and counts as one request, so many together would fill the database.
   */
  async inviteAll(actor: SessionPrincipal, emails: readonly string[], role: string): Promise<InvitationResult[]> {
    roleOfName(role)
    const { userId } = actor
    if (this.#inviting.has(userId))
      throw fail('rate_limit_exceeded', { message: 'Another call of yours invites people now. Wait until it has ended.', retryAfterSeconds: 1 })
    this.#inviting.add(userId)
    try {
      return await this.#inviteEach(actor, emails, role)
    } finally {
      this.#inviting.delete(userId)
    }
  }

  async #inviteEach(actor: SessionPrincipal, emails: readonly string[], role: string): Promise<InvitationResult[]> {
    const results: InvitationResult[] = []
    for (const email of emails) {
      try {
        results.push({ email, invitation: await this.invite(actor, { email, role }) })
      } catch (error) {
        if (!(error instanceof GatewayError) || !ofOneAddress.has(error.errorName)) throw error
        results.push({ email, error })
      }
    }
    return results
  }

  /**
   * Returns the address of the page on which the invited person answers, for somebody who hands it over. It contains no secret: who opens it signs in with
   * the invited address. An admin gets none for an invitation as owner. Throws `forbidden` and `not_found`.
   */
  async linkOf(actor: SessionPrincipal, id: number): Promise<{ invitation: Pending; link: string }> {
    const invitation = await this.#deps.db.maybe(findPending, actor.orgId, id)
    if (invitation === null) throw noPending()
    if (invitation.role === 'owner' && actor.role !== 'owner') throw fail('forbidden', { message: 'Only an owner invites an owner.' })
    return { invitation, link: this.#link() }
  }

  /**
   * Mails an open invitation once more. An address gets at most one mail an hour from one organisation, however often it is invited. An admin does not
   * send an invitation as owner. Throws `forbidden`, `not_found` and, within that hour, `already_invited`. Decision 0772
   * says why.
   */
  async resend(actor: SessionPrincipal, id: number): Promise<Pending> {
    const { db, clock } = this.#deps
    const now = new Date(clock.nowMs())
    return db.tx(async tx => {
      const { actorRole, name } = await lockedOrg(tx, actor)
      if (actorRole === 'member') throw fail('forbidden', { message: 'This needs the role owner or admin.' })
      const invitation = await tx.maybe(findPending, actor.orgId, id)
      if (invitation === null) throw noPending()
      if (invitation.role === 'owner' && actorRole !== 'owner') throw fail('forbidden', { message: 'Only an owner invites an owner.' })
      if (!(await this.#notify(tx, actor, invitation, name, now)))
        throw fail('already_invited', { message: 'This address was mailed within this hour. Send the mail again later, or hand the link over.' })
      return invitation
    })
  }

  /** Withdraws an open invitation. Throws `not_found`. */
  async withdraw(orgId: number, id: number): Promise<void> {
    const { db, clock } = this.#deps
    if ((await db.maybe(decideInvitation, orgId, id, 'withdrawn', new Date(clock.nowMs()))) === null) throw noPending()
  }

  /**
   * Makes the person a member with the invited role. Keys of an earlier membership stay revoked. Throws `member_cap`. Throws `not_found`
   * when the invitation belongs to another person or is already decided.
   */
  async accept(actor: SessionPrincipal, id: number): Promise<OwnInvitation> {
    const { controlLog, clock, ids } = this.#deps
    const { userId } = actor
    const now = new Date(clock.nowMs())
    const accepted = await controlLog.change(async tx => {
      const invitation = await this.#decide(tx, userId, id, 'accepted', now)
      const { orgId, role } = invitation
      // An invitation changes no role of somebody who is already a member. So accepting cannot take rights away.
      if ((await tx.maybe(findMembership, orgId, userId)) !== null) return { value: invitation, news: [] }
      await this.#checkRoom(tx, orgId)
      const keys = await endKeysOf(tx, ids, orgId, userId, now)
      await tx.exec(joinOrg, orgId, userId, role, now)
      return { value: invitation, news: [memberChanged(orgId, userId), ...keys] }
    })
    await this.#deps.onDecision(accepted.orgId, actor, 'acceptInvitation', id)
    return accepted
  }

  /** Declines an invitation permanently. Throws `not_found` like `accept`. */
  async decline(actor: SessionPrincipal, id: number): Promise<void> {
    const { db, clock } = this.#deps
    const { orgId } = await db.tx(tx => this.#decide(tx, actor.userId, id, 'declined', new Date(clock.nowMs())))
    await this.#deps.onDecision(orgId, actor, 'declineInvitation', id)
  }

  async #decide(tx: Tx, userId: number, id: number, status: 'accepted' | 'declined', now: Date): Promise<OwnInvitation> {
    const invitation = await tx.maybe(findOwnInvitation, userId, id)
    if (invitation === null) throw noInvitation()
    await tx.one(lockOrg, invitation.orgId)
    if ((await tx.maybe(decideInvitation, invitation.orgId, id, status, now)) === null) throw noInvitation()
    return invitation
  }

  async #checkPace(tx: Tx, orgId: number): Promise<void> {
    const { clock, membersMax } = this.#deps
    if ((await tx.one(countInvited, orgId, new Date(clock.nowMs() - 24 * hourMs))).invited < aDayMax(membersMax)) return
    throw fail('rate_limit_exceeded', {
      message: 'This organisation has sent as many invitations as it may in a day. Try again tomorrow.',
      retryAfterSeconds: hourMs / 1000,
    })
  }

  /** Throws `member_cap` when the organisation is full. The caller holds the lock on the organisation. */
  async #checkRoom(tx: Tx, orgId: number): Promise<void> {
    const { membersMax } = this.#deps
    const { members, pending } = await tx.one(countPeople, orgId)
    if (members + pending >= membersMax)
      throw fail('member_cap', {
        message: `The organisation is full: ${membersMax} members and open invitations. Remove a member or withdraw an invitation first.`,
      })
  }

  #link(): string {
    return `${this.#deps.baseUrl()}/invitations`
  }

  /** Returns false when the address was mailed within the hour of `now`. */
  #notify(tx: Tx, actor: SessionPrincipal, { email, role }: Pending, orgName: string, now: Date): Promise<boolean> {
    return this.#deps.mail.enqueue(tx, {
      orgId: actor.orgId,
      to: email,
      template: 'invitation',
      data: { orgName, inviter: actor.email, role, link: this.#link() },
      // One mail per hour and address is sent. Otherwise repeated inviting and withdrawing could fill a stranger's mailbox.
      onceKey: `invitation:${actor.orgId}:${email.toLowerCase()}:${Math.floor(now.getTime() / hourMs)}`,
    })
  }
}
