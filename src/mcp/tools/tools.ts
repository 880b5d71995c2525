/** The tools of the MCP server. Each tool calls an endpoint row. To add a tool, add one line here. An operation without a row needs a row first. */
import { mcpRows } from '../mcp-rows.ts'
import { chatTool } from './chat/tool-chat.ts'
import { memoryTools } from './memory/tool-memory.ts'
import { toolsDescribeTool } from './servers/tool-tools-describe.ts'
import { toolsSearchTool } from './servers/tool-tools-search.ts'
import { budgetTool, whoamiTool } from './tool-account.ts'
import { budgetRequestTool } from './tool-budget-request.ts'
import { embedTool } from './tool-embed.ts'
import { imageTool } from './tool-image.ts'
import { modelsTool } from './tool-models.ts'
import { routeTool } from './tool-route.ts'
import { usageTool } from './tool-usage.ts'
import type { Tool } from './toolbox/tool.ts'

/** Returns every tool. `memoryObjectMaxBytes` is the maximum size of one memory object over MCP (setting MEMORY_MCP_MAX_BYTES). */
export function mcpTools(memoryObjectMaxBytes: number): Tool[] {
  return [
    whoamiTool(mcpRows.whoami),
    chatTool(mcpRows.chatCompletions),
    embedTool(mcpRows.embeddings),
    imageTool(mcpRows.generateImages),
    modelsTool(mcpRows.listModels),
    routeTool(mcpRows.previewRoute),
    ...memoryTools(mcpRows.memory, memoryObjectMaxBytes),
    usageTool(mcpRows.usage),
    budgetTool(mcpRows.budgets),
    budgetRequestTool(mcpRows.askForBudget),
    toolsSearchTool(mcpRows.searchTools),
    toolsDescribeTool(mcpRows.readTool),
  ]
}
