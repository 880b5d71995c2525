/** Every endpoint of the product. This file contains nothing else. Decision 0001 says why. */
import { childrenEndpoints } from '../../../agents/children/children-endpoints.ts'
import { agentEndpoints } from '../../../agents/endpoints.ts'
import { oauthEndpoints } from '../../../agents/federation/oauth-endpoints.ts'
import { trustEndpoints } from '../../../agents/federation/trust-endpoints.ts'
import { playgroundEndpoints } from '../../../agents/playground/playground-endpoints.ts'
import { connectEndpoints } from '../../../connect/connect-endpoints.ts'
import { mcpEndpoints } from '../../../mcp/endpoints.ts'
import { mcpOAuthEndpoints } from '../../../mcp/oauth-endpoints.ts'
import { appendEndpoints } from '../../../memory/endpoints/append-endpoints.ts'
import { memoryEndpoints } from '../../../memory/endpoints/endpoints.ts'
import { historyEndpoints } from '../../../memory/endpoints/history-endpoints.ts'
import { promoteEndpoints } from '../../../memory/endpoints/promote-endpoints.ts'
import { reconcileEndpoints } from '../../../memory/endpoints/reconcile-endpoints.ts'
import { searchEndpoints } from '../../../memory/endpoints/search-endpoints.ts'
import { shareEndpoints } from '../../../memory/endpoints/share-endpoints.ts'
import { memoryUsageEndpoints } from '../../../memory/endpoints/usage-endpoints.ts'
import type { AnyRow } from '../../../platform/endpoint.ts'
import { accessEndpoints } from '../../access/endpoints.ts'
import { sessionEndpoints } from '../../access/own-sessions/session-endpoints.ts'
import { invitationEndpoints } from '../../access/pages/invitation-endpoints.ts'
import { signInEndpoints } from '../../access/sign-in/sign-in-endpoints.ts'
import { auditEndpoints } from '../../audit/audit-endpoints.ts'
import { batchEndpoints } from '../../batches/endpoints/batch-endpoints.ts'
import { fileEndpoints } from '../../batches/endpoints/file-endpoints.ts'
import { billingEndpoints } from '../../billing/billing-endpoints.ts'
import { invoiceEndpoints } from '../../billing/invoices/invoice-endpoints.ts'
import { paymentEndpoints } from '../../billing/payments/payment-endpoints.ts'
import { billingProfileEndpoints } from '../../billing/profile/profile-endpoints.ts'
import { customEndpoints } from '../../byok/custom-servers/custom-endpoints.ts'
import { providerKeyEndpoints } from '../../byok/provider-key-endpoints.ts'
import { catalogEndpoints } from '../../catalog/endpoints.ts'
import { geminiModelEndpoints } from '../../catalog/gemini-model-endpoints.ts'
import { priceEndpoints } from '../../catalog/prices/price-endpoints.ts'
import { alertEndpoints } from '../../collections/alerts/alert-endpoints.ts'
import { collectionEndpoints } from '../../collections/collection-endpoints.ts'
import { monitorEndpoints } from '../../collections/monitoring/monitor-endpoints.ts'
import { complianceEndpoints } from '../../compliance/endpoints.ts'
import { hintEndpoints } from '../../hints/endpoints.ts'
import { audioEndpoints } from '../../inference/endpoints/audio-endpoints.ts'
import { inferenceEndpoints } from '../../inference/endpoints/endpoints.ts'
import { geminiEndpoints } from '../../inference/endpoints/gemini-endpoints.ts'
import { imageEndpoints } from '../../inference/endpoints/image-endpoints.ts'
import { messagesEndpoints } from '../../inference/endpoints/messages-endpoints.ts'
import { responsesEndpoints } from '../../inference/endpoints/responses-endpoints.ts'
import { scoreEndpoints } from '../../inference/endpoints/score-endpoints.ts'
import { keyEndpoints } from '../../keys/key-endpoints.ts'
import { limitsEndpoints } from '../../limits/endpoints.ts'
import { budgetRequestEndpoints } from '../../limits/requests/budget-request-endpoints.ts'
import { operatorEndpoints } from '../../operator/operator-endpoints.ts'
import { profileEndpoints } from '../../orgs/accounts/profile-endpoints.ts'
import { signInRuleEndpoints } from '../../orgs/joining/sign-in-rule-endpoints.ts'
import { memberEndpoints } from '../../orgs/members/member-endpoints.ts'
import { orgEndpoints } from '../../orgs/org-endpoints.ts'
import { workspaceEndpoints } from '../../orgs/workspaces/workspace-endpoints.ts'
import { routingEndpoints } from '../../routing/preview/routing-endpoints.ts'
import { toolEndpoints } from '../../tools/calls/tool-endpoints.ts'
import { serverReadEndpoints } from '../../tools/mounts/server-read-endpoints.ts'
import { toolConnectionEndpoints } from '../../tools/oauth/connections/tool-connection-endpoints.ts'
import { toolPinEndpoints } from '../../tools/registry/approvals/tool-pin-endpoints.ts'
import { toolServerEndpoints } from '../../tools/registry/servers/tool-server-endpoints.ts'
import { agentToolEndpoints } from '../../tools/rules/agent-tool-endpoints.ts'
import { toolSearchEndpoints } from '../../tools/search/tool-search-endpoints.ts'
import { activityEndpoints } from '../../usage/activity/activity-endpoints.ts'
import { eventEndpoints } from '../../usage/activity/event-endpoints.ts'
import { usageEndpoints } from '../../usage/endpoints.ts'
import { modelStatsEndpoints } from '../../usage/public/model-stats-endpoints.ts'
import { refusedCallEndpoints } from '../../usage/refusals/refused-call-endpoints.ts'
import { usageOverviewEndpoints } from '../../usage/reports/usage-overview-endpoints.ts'
import { runEndpoints } from '../../usage/runs/run-endpoints.ts'
import { webhookEndpoints } from '../../webhooks/webhook-endpoints.ts'
import { discoveryEndpoints } from '../documents/discovery.ts'
import { healthEndpoints } from '../documents/health-endpoints.ts'
import type { Binding } from '../edge.ts'
import { displayed } from './displayed-rows.ts'

export const endpointTable = {
  ...inferenceEndpoints,
  ...responsesEndpoints,
  ...messagesEndpoints,
  ...geminiEndpoints,
  ...imageEndpoints,
  ...audioEndpoints,
  ...scoreEndpoints,
  ...fileEndpoints,
  ...batchEndpoints,
  ...catalogEndpoints,
  ...geminiModelEndpoints,
  ...modelStatsEndpoints,
  ...priceEndpoints,
  ...accessEndpoints,
  ...signInEndpoints,
  ...sessionEndpoints,
  ...invitationEndpoints,
  ...orgEndpoints,
  ...displayed(memberEndpoints, ['listMembers']),
  ...signInRuleEndpoints,
  ...displayed(workspaceEndpoints, ['listWorkspaces']),
  ...profileEndpoints,
  ...displayed(keyEndpoints, ['listKeys']),
  ...providerKeyEndpoints,
  ...customEndpoints,
  ...toolServerEndpoints,
  ...toolConnectionEndpoints,
  ...toolPinEndpoints,
  ...agentToolEndpoints,
  ...routingEndpoints,
  ...collectionEndpoints,
  ...billingEndpoints,
  ...billingProfileEndpoints,
  ...paymentEndpoints,
  ...auditEndpoints,
  ...invoiceEndpoints,
  ...displayed(agentEndpoints, ['listAgents', 'getAgent']),
  ...trustEndpoints,
  ...oauthEndpoints,
  ...childrenEndpoints,
  ...playgroundEndpoints,
  ...connectEndpoints,
  ...memoryEndpoints,
  ...reconcileEndpoints,
  ...historyEndpoints,
  ...appendEndpoints,
  ...searchEndpoints,
  ...shareEndpoints,
  ...promoteEndpoints,
  ...memoryUsageEndpoints,
  ...displayed(usageEndpoints, ['usage', 'sessionUsage']),
  ...displayed(usageOverviewEndpoints, ['usageByKey', 'usageDaily']),
  ...displayed(runEndpoints, ['listRuns', 'getRun']),
  ...refusedCallEndpoints,
  ...displayed(activityEndpoints, ['activity']),
  ...displayed(eventEndpoints, ['activityEvents', 'activityCall']),
  ...displayed(limitsEndpoints, ['orgBudgets', 'budgets']),
  ...budgetRequestEndpoints,
  ...monitorEndpoints,
  ...alertEndpoints,
  ...webhookEndpoints,
  ...toolEndpoints,
  ...toolSearchEndpoints,
  ...serverReadEndpoints,
  ...complianceEndpoints,
  ...hintEndpoints,
  ...operatorEndpoints,
  ...discoveryEndpoints,
  ...healthEndpoints,
  ...mcpEndpoints,
  ...mcpOAuthEndpoints,
}

/** All services that the rows need. composition/gateway.ts does not compile when one is missing. */
export type RowServices = UnionToIntersection<ServicesOf<(typeof endpointTable)[keyof typeof endpointTable]>>
type ServicesOf<R> = R extends { handle(services: infer S, ...rest: never[]): unknown } ? S : never
type UnionToIntersection<U> = (U extends unknown ? (u: U) => void : never) extends (i: infer I) => void ? I : never

/** Returns every address of the table. A row with a twin has two addresses. */
export function bindingsOf(table: Readonly<Record<string, AnyRow>>): Binding[] {
  return Object.entries(table).flatMap(([name, row]) => {
    const own: Binding = { name, row, at: row.at, auth: row.auth, access: row.access }
    return row.twin ? [own, { name: `${name}Console`, row, ...row.twin }] : [own]
  })
}
