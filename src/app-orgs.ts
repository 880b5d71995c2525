/** Organisations, members, invitations, workspaces, as services of rows. */
import type { AppParts } from './app-services.ts'
import { orgRoutingChanged } from './gateway/byok/org-credentials.ts'
import { Accounts } from './gateway/orgs/account.ts'
import { Invitations, type InvitationsDeps } from './gateway/orgs/invitations.ts'
import { Members } from './gateway/orgs/members.ts'
import { OrgSettings } from './gateway/orgs/org-settings.ts'
import { Workspaces } from './gateway/orgs/workspaces.ts'

export function orgServices({ db, clock, ids, log, config, controlLog, orgs, sessions, mail, audit, limits, contentLog, baseUrl }: AppParts) {
  const onDecision: InvitationsDeps['onDecision'] = (orgId, actor, act, id) =>
    audit
      .record({ orgId, actor, act, target: `id=${id}`, sourceIp: null, requestId: null }, 'ok')
      .catch((error: unknown) => log.error('decision not in the audit trail', { orgId, error }))
  return {
    orgs,
    accounts: new Accounts({ db, clock, orgs, teamOrgsMax: config.TEAM_ORGS_MAX, moveSession: (sessionId, orgId) => sessions.move(sessionId, orgId) }),
    members: new Members({ db, clock, ids, controlLog }),
    invitations: new Invitations({ db, clock, ids, controlLog, mail, membersMax: config.MEMBERS_MAX, baseUrl, onDecision }),
    orgSettings: new OrgSettings({ controlLog, routingChanged: orgRoutingChanged, onRetention: (orgId, days) => contentLog.shrink(orgId, days) }),
    workspaces: new Workspaces({ db, clock, controlLog, budgets: limits.budgets, flushNow: () => limits.flushNow() }),
  }
}
