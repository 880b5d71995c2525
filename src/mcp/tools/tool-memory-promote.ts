import { z } from 'zod'
import type { AnyRow } from '../../platform/endpoint.ts'
import { rowTool, type Tool } from './tool.ts'
import { bytesToWrite, conditionsOf, etag, ifMatchArgument, overwrites, withEtag } from './tool-memory-parts.ts'

/** memory_promote: a record, in the name of an owner or admin who vouches for it. */
export function memoryPromoteTool(row: AnyRow, objectMaxBytes: number): Tool {
  const outputSchema = z.object({ key: z.string(), etag })
  return rowTool({
    name: 'memory_promote',
    toolset: 'memory',
    title: 'Promote to a record',
    description:
      'Write a record: what the organisation, or the team of a workspace, may rely on. It stands in the name of the owner or admin whose key this is, so do it only when that person asked for this very content. The same name again replaces the record.',
    annotations: overwrites,
    row,
    inputSchema: z.object({
      workspace_id: z.number().int().min(1).optional().describe('The workspace whose record it is; left out: a record of the whole organisation.'),
      name: z.string().min(1).describe('Path below records/, for example policies/security.md.'),
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
      return { text: `Promoted ${key}, etag ${made ?? 'unknown'}.`, structured: { key, etag: made } }
    },
  })
}
