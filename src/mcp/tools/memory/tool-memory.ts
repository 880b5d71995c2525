/** Offers shared memory as tools. The tools call the endpoints under /v1/me/memory and add the descriptions and warnings that agents need. */

import { z } from 'zod'
import type { MemoryRows } from '../../mcp-rows.ts'
import { rowTool, type Tool } from '../toolbox/tool.ts'
import { keyText } from './text/tool-memory-marking.ts'
import { bytesToWrite, conditionsOf, etag, ifMatchArgument, overwrites, withEtag } from './text/tool-memory-parts.ts'
import { memoryPathsTool } from './text/tool-memory-paths.ts'
import { memoryEditTool } from './tool-memory-edit.ts'
import { memoryHistoryTool, memoryRestoreTool } from './tool-memory-history.ts'
import { memoryListTool } from './tool-memory-list.ts'
import { memoryReadTool } from './tool-memory-read.ts'
import { memorySearchTool } from './tool-memory-search.ts'
import { memorySharesTool, memoryShareTool } from './tool-memory-shares.ts'
import { memoryAppendTool, memoryDeleteTool, memoryWriteTool } from './tool-memory-write.ts'

/** Returns all memory tools. `objectMaxBytes` is the maximum size of one object that is written over MCP (setting MEMORY_MCP_MAX_BYTES). */
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

/** The tool memory_promote writes a record in the name of an owner or admin, who vouches for it. */
export function memoryPromoteTool(row: MemoryRows['promote'], objectMaxBytes: number): Tool {
  const outputSchema = z.object({ key: z.string(), etag })
  return rowTool({
    name: 'memory_promote',
    toolset: 'memory',
    title: 'Promote to a record',
    description:
      'Write a record: what the organisation, or the team of a workspace, may rely on. It is signed with the name of the owner or admin of this key, so do it only when that person asked for this very content. The same name again replaces the record.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      workspace_id: z.number().int().min(1).optional().describe('The workspace whose record it is; left out: a record of the whole organisation.'),
      name: z.string().min(1).describe('Name below records/, without a slash, for example security.md.'),
      content: z.string().describe('All of the text of the record.'),
      source_keys: z.array(z.string()).max(200).default([]).describe('Memory keys that it was made from; readers see them. 1024 bytes in all.'),
      if_match: ifMatchArgument,
      create_only: z.boolean().default(false).describe('Fail with memory_conflict when there is a record of that name.'),
    }),
    outputSchema,
    toInput: ({ if_match, create_only, ...body }) => {
      bytesToWrite(body.content, objectMaxBytes)
      return { body, headers: conditionsOf({ if_match, create_only }) }
    },
    toResult: value => {
      const { key, etag: made } = outputSchema.parse({ etag: null, ...withEtag(value) })
      return { text: `Promoted ${keyText(key)}, etag ${made ?? 'unknown'}.`, structured: { key, etag: made } }
    },
  })
}
