import type { Call, Reply } from '../../../platform/endpoint.ts'
import { reply } from '../../../platform/endpoint.ts'
import type { SessionPrincipal } from '../../../platform/security/principal.ts'
import type { AuditTrail } from '../../audit/audit.ts'
import type { Invitations } from '../../orgs/members/invitations.ts'
import type { Sessions } from '../sessions.ts'
import type { SignInCompletion } from '../sign-in/sign-in-completion.ts'
import { homePath } from './own-path.ts'
import { privateHeaders } from './page-frame.ts'
import { invitationsPage } from './pages.ts'

export interface InvitationPagesDeps {
  readonly signInCompletion: SignInCompletion
  readonly sessions: Sessions
  readonly invitations: Invitations
  readonly audit: AuditTrail
  /** The setting CONSOLE. */
  readonly hasConsole: boolean
}

/** The path of the page. Mails with invitations link to it. */
export const invitationsPath = '/invitations'
const seeOther = 303

/** The page on which a person who was invited by mail accepts or declines. */
export class InvitationPages {
  readonly #deps: InvitationPagesDeps
  constructor(deps: InvitationPagesDeps) {
    this.#deps = deps
  }

  /** Shows the open invitations of the signed-in person. A person who is not signed in is sent to sign in first. */
  async show(cookie: string | undefined): Promise<Reply> {
    const { signInCompletion, invitations } = this.#deps
    const person = await signInCompletion.currentSession(cookie)
    if (person === null) return signInFirst()
    return invitationsPage(person.email, await invitations.ofPerson(person.userId))
  }

  /** Accepts an invitation and moves the session to that organisation, or declines it. Throws `not_found` and `member_cap`. */
  async decide(
    { cookie, accept }: { readonly cookie?: string | undefined; readonly accept?: string | undefined },
    id: number,
    isAccepted: boolean,
    call: Pick<Call, 'requestId' | 'clientIp'>,
  ): Promise<Reply> {
    const { signInCompletion, invitations, sessions, hasConsole } = this.#deps
    const person = await signInCompletion.currentSession(cookie)
    if (person === null) return signInFirst()
    if (isAccepted) {
      const { orgId } = await invitations.accept(person, id)
      await sessions.move(person.sessionId, orgId)
    } else await invitations.decline(person, id)
    await this.#note(person, isAccepted ? 'acceptInvitation' : 'declineInvitation', id, call)
    return reply.empty(seeOther, { ...privateHeaders, location: isAccepted ? homePath(accept, hasConsole) : invitationsPath })
  }

  #note(actor: SessionPrincipal, act: string, id: number, call: Pick<Call, 'requestId' | 'clientIp'>): Promise<void> {
    return this.#deps.audit.record({ orgId: actor.orgId, actor, act, target: `id=${id}`, sourceIp: call.clientIp(), requestId: call.requestId }, 'ok')
  }
}

const signInFirst = (): Reply => reply.redirect(`/auth?${new URLSearchParams({ return_to: invitationsPath })}`, privateHeaders)
