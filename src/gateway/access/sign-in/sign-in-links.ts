import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { hashKey } from '../../../platform/security/secrets.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import type { AuditTrail } from '../../audit/audit.ts'
import type { People } from '../../orgs/accounts/people.ts'
import type { Arriving, SignInCompletion } from './sign-in-completion.ts'
import { deleteOldLinks, findLink, insertLink, takeLink } from './sign-in-queries.ts'

export interface SignInLinksDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly people: People
  readonly signInCompletion: SignInCompletion
  readonly audit: AuditTrail
  /** The setting SIGN_IN_LINK_TTL_S. */
  readonly ttlSeconds: number
  readonly baseUrl: () => string
}

export interface SignInLink {
  /** The address of the person as it is stored. */
  readonly email: string
  readonly url: string
  readonly expiresAt: Date
  /** Time from now to `expiresAt`. */
  readonly lifeSeconds: number
}

const tokenBytes = 32
const notValid = 'This sign-in link was used already, has run out or was not copied whole. Ask the operator for another one.'

/** One-time links with which the operator lets a person sign in. They are for gateways without an identity provider, and for the very first sign-in. */
export class SignInLinks {
  readonly #deps: SignInLinksDeps
  constructor(deps: SignInLinksDeps) {
    this.#deps = deps
  }

  /** Makes a link for the person with this address. The person must be a known user or have an invitation. Throws `not_found`. */
  async make(email: string): Promise<SignInLink> {
    const { db, clock, ids, people, audit, ttlSeconds, baseUrl } = this.#deps
    const person = await people.findInvited(email)
    if (person === null)
      throw fail('not_found', {
        message: `Nobody here has the address ${email}, and no invitation waits for it. Invite it with POST /me/members, or make an organisation with: npx brigade admin create --email ${email} --org <name>`,
      })
    const token = ids.secret('', tokenBytes)
    const expiresAt = new Date(clock.nowMs() + ttlSeconds * 1000)
    await db.exec(insertLink, hashKey(token), person.id, expiresAt)
    await audit.record({ orgId: null, actor: 'operator', act: 'makeSignInLink', target: `user=${person.id}`, sourceIp: null, requestId: null }, 'ok')
    return { email: person.email, url: `${baseUrl()}/auth/link?token=${token}`, expiresAt, lifeSeconds: ttlSeconds }
  }

  /** Returns the address of the person without using up the link. Throws `bad_request`. */
  async look(token: string): Promise<{ email: string }> {
    const found = await this.#deps.db.maybe(findLink, hashKey(token), new Date(this.#deps.clock.nowMs()))
    if (found === null) throw fail('bad_request', { message: notValid })
    return found
  }

  /** Uses up the link and signs its person in. Returns the set-cookie value of the session. Throws `bad_request`. */
  async use(token: string, arriving: Arriving): Promise<string> {
    const taken = await this.#deps.db.maybe(takeLink, hashKey(token), new Date(this.#deps.clock.nowMs()))
    if (taken === null) throw fail('bad_request', { message: notValid })
    await this.#deps.people.ensureOrg(taken.userId)
    return this.#deps.signInCompletion.signIn(taken.userId, 'signInByLink', arriving, taken.email)
  }

  /** Deletes expired links. Returns their number. */
  async sweep(): Promise<number> {
    return this.#deps.db.exec(deleteOldLinks, new Date(this.#deps.clock.nowMs()))
  }
}
