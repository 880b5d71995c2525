/** The endpoint rows that tools, resources, prompts and completion call. */
import { agentEndpoints } from '../agents/endpoints.ts'
import { accessEndpoints } from '../gateway/access/endpoints.ts'
import { catalogEndpoints } from '../gateway/catalog/endpoints.ts'
import { inferenceEndpoints } from '../gateway/inference/endpoints/endpoints.ts'
import { imageEndpoints } from '../gateway/inference/endpoints/image-endpoints.ts'
import { limitsEndpoints } from '../gateway/limits/endpoints.ts'
import { budgetRequestEndpoints } from '../gateway/limits/requests/budget-request-endpoints.ts'
import { routingEndpoints } from '../gateway/routing/preview/routing-endpoints.ts'
import { toolEndpoints } from '../gateway/tools/calls/tool-endpoints.ts'
import { serverReadEndpoints } from '../gateway/tools/mounts/server-read-endpoints.ts'
import { toolSearchEndpoints } from '../gateway/tools/search/tool-search-endpoints.ts'
import { usageEndpoints } from '../gateway/usage/endpoints.ts'
import { appendEndpoints } from '../memory/endpoints/append-endpoints.ts'
import { memoryEndpoints } from '../memory/endpoints/endpoints.ts'
import { historyEndpoints } from '../memory/endpoints/history-endpoints.ts'
import { promoteEndpoints } from '../memory/endpoints/promote-endpoints.ts'
import { searchEndpoints } from '../memory/endpoints/search-endpoints.ts'
import { shareEndpoints } from '../memory/endpoints/share-endpoints.ts'

/** The rows with their own types. The compiler checks each call of a row: the names in path, query and headers, and the body. */
export const mcpRows = {
  whoami: accessEndpoints.whoami,
  chatCompletions: inferenceEndpoints.chatCompletions,
  embeddings: inferenceEndpoints.embeddings,
  generateImages: imageEndpoints.generateImages,
  listModels: catalogEndpoints.listModels,
  previewRoute: routingEndpoints.previewRoute,
  usage: usageEndpoints.usage,
  budgets: limitsEndpoints.budgets,
  askForBudget: budgetRequestEndpoints.askForBudget,
  listAgents: agentEndpoints.listAgents,
  listTools: toolEndpoints.listTools,
  readTool: toolEndpoints.readTool,
  callTool: toolEndpoints.callTool,
  searchTools: toolSearchEndpoints.searchTools,
  ...serverReadEndpoints,
  memory: { ...memoryEndpoints, ...appendEndpoints, ...historyEndpoints, ...searchEndpoints, ...promoteEndpoints, ...shareEndpoints },
}

export type McpRows = typeof mcpRows
export type MemoryRows = McpRows['memory']
