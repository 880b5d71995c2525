/** Constructs the services for organisations, members, invitations and workspaces. */
import type { BatchFiles } from '../../gateway/batches/files.ts'
import { orgRoutingChanged } from '../../gateway/byok/org-credentials.ts'
import { countKeysOfWorkspaces } from '../../gateway/keys/active-names.ts'
import { Accounts } from '../../gateway/orgs/accounts/account.ts'
import { Profiles } from '../../gateway/orgs/accounts/profile.ts'
import { Invitations, type InvitationsDeps } from '../../gateway/orgs/members/invitations.ts'
import { Members } from '../../gateway/orgs/members/members.ts'
import { OrgSettings } from '../../gateway/orgs/org-settings.ts'
import { Workspaces } from '../../gateway/orgs/workspaces/workspaces.ts'
import { endConnectionsOf } from '../../gateway/tools/oauth/connections/connection-end.ts'
import type { AppParts } from '../parts.ts'

export function orgServices(
  { db, clock, ids, log, config, controlLog, orgs, orgDisplay, sessions, mail, audit, limits, agents, contentLog, replyCache, baseUrl }: AppParts,
  batchFiles: Pick<BatchFiles, 'shrink'>,
) {
  const onDecision: InvitationsDeps['onDecision'] = (orgId, actor, act, id) =>
    audit
      .record({ orgId, actor, act, target: `id=${id}`, sourceIp: null, requestId: null }, 'ok')
      .catch((error: unknown) => log.error('decision not in the audit trail', { orgId, error }))
  return {
    orgs,
    orgDisplay,
    accounts: new Accounts({ db, clock, orgs, teamOrgsMax: config.TEAM_ORGS_MAX, moveSession: (sessionId, orgId) => sessions.move(sessionId, orgId) }),
    members: new Members({
      clock,
      ids,
      db,
      controlLog,
      budgets: limits.budgets,
      journal: limits,
      onLeave: async (tx, orgId, userId) => [
        ...(await agents.playgrounds.endOf(tx, orgId, userId)),
        ...(await endConnectionsOf(tx, orgId, userId, new Date(clock.nowMs()))),
      ],
    }),
    invitations: new Invitations({ db, clock, ids, controlLog, mail, membersMax: config.MEMBERS_MAX, baseUrl, onDecision }),
    orgSettings: new OrgSettings({
      controlLog,
      routingChanged: orgRoutingChanged,
      onRetention: async (orgId, days) => {
        await contentLog.shrink(orgId, days)
        await replyCache.shrink(orgId, days)
        await batchFiles.shrink(orgId, days)
      },
    }),
    workspaces: new Workspaces({
      db,
      clock,
      controlLog,
      budgets: limits.budgets,
      journal: limits,
      countKeys: (orgId, workspaceIds) => countKeysOfWorkspaces(db, orgId, workspaceIds),
    }),
  }
}

/** Constructs the service for coding profiles. */
export function profileServices({ db, clock, catalog }: AppParts) {
  return { profiles: new Profiles({ db, clock, isModel: id => isModel(id, catalog.snapshot) }) }
}

/**
 * The form of a discovered model, `provider/model`. The provider must be known. The rest only has to be printable, because a provider's list of
 * models changes, and so do the saved keys.
 */
const discoveredId = /^([a-z0-9][a-z0-9._-]{0,63})\/[\x21-\x7e]{1,200}$/

function isModel(id: string, { models, providers }: AppParts['catalog']['snapshot']): boolean {
  const provider = discoveredId.exec(id)?.[1]
  return models.has(id) || (provider !== undefined && providers.has(provider))
}
