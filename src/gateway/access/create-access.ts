import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import type { Jobs } from '../../platform/db/jobs.ts'
import type { Log } from '../../platform/observe/log.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { Sealer } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { AuditTrail } from '../audit/audit.ts'
import type { Keys } from '../keys/keys.ts'
import { People } from '../orgs/accounts/people.ts'
import type { Invitations } from '../orgs/members/invitations.ts'
import { CliLogin } from './cli-login.ts'
import { createGithub } from './identity/github.ts'
import { createGoogle } from './identity/google.ts'
import type { IdentityProviders } from './identity/identity-provider.ts'
import { providerFetch } from './identity/provider-fetch.ts'
import { OwnSessions } from './own-sessions/own-sessions.ts'
import { InvitationPages } from './pages/invitation-pages.ts'
import type { OwnPages } from './pages/own-pages.ts'
import type { HomePage } from './pages/own-path.ts'
import type { Sessions } from './sessions.ts'
import { SignIn } from './sign-in/sign-in.ts'
import { SignInCompletion } from './sign-in/sign-in-completion.ts'
import { SignInLinks } from './sign-in/sign-in-links.ts'

const sweepEveryMs = 60_000

export interface AccessDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly config: Config
  readonly sealer: Sealer
  readonly outbound: Outbound
  readonly controlLog: ControlLog
  readonly sessions: Sessions
  readonly audit: AuditTrail
  readonly keys: Keys
  readonly invitations: Invitations
  readonly jobs: Jobs
  readonly baseUrl: () => string
}

export interface Access {
  readonly sessions: Sessions
  readonly ownSessions: OwnSessions
  readonly people: People
  readonly signInCompletion: SignInCompletion
  readonly invitationPages: InvitationPages
  readonly signIn: SignIn
  readonly signInLinks: SignInLinks
  readonly cliLogin: CliLogin
  /** The pages from which a browser may send requests with a session. */
  readonly ownPages: OwnPages & HomePage
}

/** Constructs the sign-in services, and registers the job that deletes what has expired. */
export function createAccess(deps: AccessDeps): Access {
  const { db, clock, ids, log, config, sealer, sessions, audit, keys, invitations, jobs, baseUrl } = deps
  const people = new People({ db, clock })
  const signInCompletion = new SignInCompletion({ db, sessions, audit })
  const signIn = new SignIn({ db, clock, ids, log, sealer, providers: identityProviders(deps), people, signInCompletion, baseUrl })
  const signInLinks = new SignInLinks({ db, clock, ids, people, signInCompletion, audit, ttlSeconds: config.SIGN_IN_LINK_TTL_S, baseUrl })
  const cliLogin = new CliLogin({ db, clock, ids, keys, audit })
  jobs.every('access.sweep', sweepEveryMs, async () => {
    await sessions.sweep()
    await signIn.sweep()
    await signInLinks.sweep()
    await cliLogin.sweep()
  })
  const invitationPages = new InvitationPages({ signInCompletion, sessions, invitations, audit, hasConsole: config.CONSOLE })
  const ownPages = { baseUrl, origins: config.CONSOLE_ORIGINS, hasConsole: config.CONSOLE }
  const ownSessions = new OwnSessions({ db, clock, controlLog: deps.controlLog })
  return { sessions, ownSessions, people, signInCompletion, invitationPages, signIn, signInLinks, cliLogin, ownPages }
}

/** Returns the identity providers that have both a client id and a client secret. */
function identityProviders({ config, outbound, clock }: AccessDeps): IdentityProviders {
  const fetch = providerFetch(outbound)
  const google = credentialsOf(config.GOOGLE_CLIENT_ID, config.GOOGLE_CLIENT_SECRET)
  const github = credentialsOf(config.GITHUB_CLIENT_ID, config.GITHUB_CLIENT_SECRET)
  return {
    google: google === null ? null : createGoogle({ ...google, issuer: config.GOOGLE_ISSUER, fetch, clock }),
    github: github === null ? null : createGithub({ ...github, siteUrl: config.GITHUB_BASE_URL, apiUrl: config.GITHUB_API_URL, fetch }),
  }
}

function credentialsOf(clientId: string | null, secret: { reveal(): string } | null): { clientId: string; clientSecret: string } | null {
  return clientId === null || secret === null ? null : { clientId, clientSecret: secret.reveal() }
}
