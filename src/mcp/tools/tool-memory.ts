/** Shared memory as tools: the rows of /v1/me/memory with the words and the caution that agents need. */
import type { AnyRow } from '../../platform/endpoint.ts'
import type { Tool } from './tool.ts'
import { memoryEditTool } from './tool-memory-edit.ts'
import { memoryHistoryTool, memoryRestoreTool } from './tool-memory-history.ts'
import { memoryListTool } from './tool-memory-list.ts'
import { memoryPathsTool } from './tool-memory-paths.ts'
import { memoryPromoteTool } from './tool-memory-promote.ts'
import { memoryReadTool } from './tool-memory-read.ts'
import { memorySearchTool } from './tool-memory-search.ts'
import { memorySharesTool, memoryShareTool } from './tool-memory-shares.ts'
import { memoryAppendTool, memoryDeleteTool, memoryWriteTool } from './tool-memory-write.ts'

/** The rows of shared memory that tools refer to. */
export interface MemoryRows {
  readonly getStore: AnyRow
  readonly paths: AnyRow
  readonly list: AnyRow
  readonly read: AnyRow
  readonly write: AnyRow
  readonly remove: AnyRow
  readonly appendMemory: AnyRow
  readonly searchMemory: AnyRow
  readonly history: AnyRow
  readonly restore: AnyRow
  readonly promote: AnyRow
  readonly listShares: AnyRow
  readonly createShare: AnyRow
  readonly grantShare: AnyRow
  readonly revokeShare: AnyRow
  readonly retireShare: AnyRow
}

/** All memory tools; `objectMaxBytes` bounds one object that is written over MCP (setting MEMORY_MCP_MAX_BYTES). */
export function memoryTools(rows: MemoryRows, objectMaxBytes: number): Tool[] {
  return [
    memoryPathsTool(rows),
    memoryListTool(rows.list),
    memoryReadTool(rows, objectMaxBytes),
    memorySearchTool(rows.searchMemory),
    memoryWriteTool(rows.write, objectMaxBytes),
    memoryEditTool(rows, objectMaxBytes),
    memoryAppendTool(rows.appendMemory, objectMaxBytes),
    memoryDeleteTool(rows.remove),
    memoryHistoryTool(rows.history),
    memoryRestoreTool(rows.restore),
    memoryPromoteTool(rows.promote, objectMaxBytes),
    memorySharesTool(rows.listShares),
    memoryShareTool(rows),
  ]
}
