/** The tools of the MCP server, each on its endpoint row. A new tool is a line here; one without a row gets a row first. */
import { accessEndpoints } from '../gateway/access/endpoints.ts'
import { catalogEndpoints } from '../gateway/catalog/endpoints.ts'
import { inferenceEndpoints } from '../gateway/inference/endpoints.ts'
import { limitsEndpoints } from '../gateway/limits/endpoints.ts'
import { usageEndpoints } from '../gateway/usage/endpoints.ts'
import { memoryEndpoints } from '../memory/endpoints.ts'
import type { Tool } from './tool.ts'
import { budgetTool, usageTool, whoamiTool } from './tool-account.ts'
import { chatTool } from './tool-chat.ts'
import { memoryTools } from './tool-memory.ts'
import { modelsTool } from './tool-models.ts'

/** Every tool; `memoryObjectMaxBytes` bounds one memory object over MCP (setting MEMORY_MCP_MAX_BYTES). */
export function mcpTools(memoryObjectMaxBytes: number): Tool[] {
  return [
    whoamiTool(accessEndpoints.whoami),
    chatTool(inferenceEndpoints.chatCompletions),
    modelsTool(catalogEndpoints.listModels),
    ...memoryTools(memoryEndpoints, memoryObjectMaxBytes),
    usageTool(usageEndpoints.usage),
    budgetTool(limitsEndpoints.budgets),
  ]
}
