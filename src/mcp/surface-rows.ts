/** The endpoint rows that resources, prompts and completion call. */
import { agentEndpoints } from '../agents/endpoints.ts'
import { accessEndpoints } from '../gateway/access/endpoints.ts'
import { limitsEndpoints } from '../gateway/limits/endpoints.ts'
import { usageEndpoints } from '../gateway/usage/endpoints.ts'
import { memoryEndpoints } from '../memory/endpoints/endpoints.ts'
import { searchEndpoints } from '../memory/endpoints/search-endpoints.ts'
import type { AnyRow } from '../platform/endpoint.ts'

export interface SurfaceRows {
  readonly whoami: AnyRow
  readonly usage: AnyRow
  readonly budgets: AnyRow
  readonly agents: AnyRow
  readonly memoryRead: AnyRow
  readonly memoryList: AnyRow
  readonly memorySearch: AnyRow
  readonly memoryWrite: AnyRow
}

export const surfaceRows: SurfaceRows = {
  whoami: accessEndpoints.whoami,
  usage: usageEndpoints.usage,
  budgets: limitsEndpoints.budgets,
  agents: agentEndpoints.listAgents,
  memoryRead: memoryEndpoints.read,
  memoryList: memoryEndpoints.list,
  memorySearch: searchEndpoints.searchMemory,
  memoryWrite: memoryEndpoints.write,
}
