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
import { type SignInChange, SignInGrants } from '../orgs/joining/sign-in-grants.ts'
import { SignInRules } from '../orgs/joining/sign-in-rules.ts'
import type { Invitations } from '../orgs/members/invitations.ts'
import { CliLogin } from './cli-login.ts'
import { claimedFor, claimsOf } from './identity/claimed-domains.ts'
import { configuredProviders } from './identity/configured-providers.ts'
import { readIssuers } from './identity/issuer-file.ts'
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
  readonly signInRules: SignInRules
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
  const issuers = readIssuers(config)
  const signIn = new SignIn({
    db,
    clock,
    ids,
    log,
    sealer,
    providers: configuredProviders(deps, issuers),
    people,
    grants: grantsOf(deps),
    claimedFor: claimedFor(issuers),
    signInCompletion,
    baseUrl,
  })
  const signInRules = new SignInRules({ db, clock, claimsOf: claimsOf(issuers) })
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
  return { sessions, ownSessions, people, signInCompletion, invitationPages, signIn, signInRules, signInLinks, cliLogin, ownPages }
}

/** Sign-ins change members by themselves, so the lines of the audit trail name the system. */
function grantsOf({ db, clock, log, config, controlLog, audit }: AccessDeps): SignInGrants {
  const lineOf = (change: SignInChange, origin: { readonly sourceIp: string; readonly requestId: string }) => ({
    ...change,
    ...origin,
    actor: 'system' as const,
  })
  return new SignInGrants({
    db,
    clock,
    log,
    controlLog,
    membersMax: config.MEMBERS_MAX,
    recordIn: (tx, change, origin) => audit.recordIn(tx, lineOf(change, origin), 'ok'),
    recordFull: (change, origin) => audit.record(lineOf(change, origin), 'member_cap'),
  })
}
