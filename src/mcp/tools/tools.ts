/** The tools of the MCP server, each on its endpoint row. A new tool is one line here. A tool without a row needs a row first. */
import { accessEndpoints } from '../../gateway/access/endpoints.ts'
import { catalogEndpoints } from '../../gateway/catalog/endpoints.ts'
import { inferenceEndpoints } from '../../gateway/inference/endpoints/endpoints.ts'
import { imageEndpoints } from '../../gateway/inference/endpoints/image-endpoints.ts'
import { limitsEndpoints } from '../../gateway/limits/endpoints.ts'
import { routingEndpoints } from '../../gateway/routing/preview/routing-endpoints.ts'
import { usageEndpoints } from '../../gateway/usage/endpoints.ts'
import { appendEndpoints } from '../../memory/endpoints/append-endpoints.ts'
import { memoryEndpoints } from '../../memory/endpoints/endpoints.ts'
import { historyEndpoints } from '../../memory/endpoints/history-endpoints.ts'
import { promoteEndpoints } from '../../memory/endpoints/promote-endpoints.ts'
import { searchEndpoints } from '../../memory/endpoints/search-endpoints.ts'
import { shareEndpoints } from '../../memory/endpoints/share-endpoints.ts'
import { chatTool } from './chat/tool-chat.ts'
import { memoryTools } from './memory/tool-memory.ts'
import { budgetTool, whoamiTool } from './tool-account.ts'
import { embedTool } from './tool-embed.ts'
import { imageTool } from './tool-image.ts'
import { modelsTool } from './tool-models.ts'
import { routeTool } from './tool-route.ts'
import { usageTool } from './tool-usage.ts'
import type { Tool } from './toolbox/tool.ts'

const memoryRows = { ...memoryEndpoints, ...appendEndpoints, ...historyEndpoints, ...searchEndpoints, ...promoteEndpoints, ...shareEndpoints }

/** Returns every tool. `memoryObjectMaxBytes` is the maximum size of one memory object over MCP (setting MEMORY_MCP_MAX_BYTES). */
export function mcpTools(memoryObjectMaxBytes: number): Tool[] {
  return [
    whoamiTool(accessEndpoints.whoami),
    chatTool(inferenceEndpoints.chatCompletions),
    embedTool(inferenceEndpoints.embeddings),
    imageTool(imageEndpoints.generateImages),
    modelsTool(catalogEndpoints.listModels),
    routeTool(routingEndpoints.previewRoute),
    ...memoryTools(memoryRows, memoryObjectMaxBytes),
    usageTool(usageEndpoints.usage),
    budgetTool(limitsEndpoints.budgets),
  ]
}
