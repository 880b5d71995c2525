import type { OperationName } from '../call.ts'

/** The reads that a hint makes out of date, by the family of its topic. */
const families: Readonly<Record<string, readonly OperationName[]>> = {
  usage: ['activity', 'activityEvents', 'orgBudgets', 'listAgentsConsole', 'getAgentConsole', 'listKeys', 'listRunsConsole', 'getRunConsole'],
  budget: ['orgBudgets', 'listWorkspaces', 'listBudgetRequestsConsole', 'listRunsConsole', 'getRunConsole'],
  agent: ['listAgentsConsole', 'getAgentConsole'],
  key: ['listKeys'],
  member: ['listMembers'],
  webhook: ['listWebhooks', 'listWebhookDeliveries', 'getWebhookDelivery'],
  memory: ['listConsole', 'historyConsole', 'searchMemoryConsole', 'memoryUsageConsole', 'listSharesConsole'],
  tools: ['listToolServers', 'previewAgentTools'],
  session: ['me', 'listOrgs'],
}

/** The topic after which everything that is shown is read again. */
export const resetTopic = 'reset'

/** Returns the reads that a topic makes out of date, or `all`. A topic of a later version makes nothing out of date. */
export const readsOf = (topic: string): readonly OperationName[] | 'all' => (topic === resetTopic ? 'all' : (families[topic.split(':', 1)[0] ?? ''] ?? []))
