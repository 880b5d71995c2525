import type { Db } from '../../../platform/db/db.ts'
import type { Call } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { SessionPrincipal } from '../../../platform/security/principal.ts'
import type { AuditTrail } from '../../audit/audit.ts'
import { browserFamily } from '../own-sessions/browser-family.ts'
import type { Sessions } from '../sessions.ts'
import { startingOrg } from './sign-in-queries.ts'

export interface SignInCompletionDeps {
  readonly db: Db
  readonly sessions: Sessions
  readonly audit: AuditTrail
}

/** The browser of the person who signs in, and the request that it sent. */
export interface Arriving {
  /** The `cookie` header. */
  readonly cookie: string | undefined
  /** The `user-agent` header. Only the family of the browser is stored. */
  readonly userAgent?: string | undefined
  readonly call: Pick<Call, 'requestId' | 'clientIp'>
}

/** Finishes every kind of sign-in once the person's identity is proven. It makes the session and writes the audit line. */
export class SignInCompletion {
  readonly #deps: SignInCompletionDeps
  constructor(deps: SignInCompletionDeps) {
    this.#deps = deps
  }

  /**
   * Signs a person in to the organisation that they used last. The previous session of the browser ends. So another person who planted its cookie or
   * kept a copy does not share the new session. `provenEmail` is the address that this sign-in proved, or null. Returns the set-cookie value of the new session. Throws `forbidden` for a person without an
   * organisation.
   */
  async signIn(userId: number, act: 'signIn' | 'signInByLink', { cookie, userAgent, call }: Arriving, provenEmail: string | null): Promise<string> {
    const { db, sessions, audit } = this.#deps
    const start = await db.maybe(startingOrg, userId)
    if (start === null) throw fail('forbidden', { message: 'You are a member of no organisation here. Ask to be invited again.' })
    const made = await sessions.create(userId, start.orgId, browserFamily(userAgent), provenEmail)
    const principal = await sessions.principalOf(made.cookie)
    const before = await this.currentSession(cookie)
    if (before !== null) await sessions.revoke(before.sessionId)
    await audit.record({ orgId: start.orgId, actor: principal, act, target: `user=${userId}`, sourceIp: call.clientIp(), requestId: call.requestId }, 'ok')
    return made.setCookie
  }

  /** Returns the session of the browser, or null. */
  async currentSession(cookie: string | undefined): Promise<SessionPrincipal | null> {
    try {
      return await this.#deps.sessions.principalOf(cookie)
    } catch (error) {
      if (error instanceof GatewayError && error.errorName === 'no_session') return null
      throw error
    }
  }
}
