import type { CallableTool } from '../registry/callable-tool.ts'
import type { CallToolResult } from '../upstream/tool-call.ts'

/** The key in `_meta` that says where a result comes from. */
const originMetaKey = 'dev.brigade/origin'

/** The start of the names in `_meta` that belong to the protocol. They say something about the connection to the server, not to our caller. */
const protocolMeta = 'io.modelcontextprotocol/'

/** The result of a tool as a caller gets it: with the server, the tool and the approved hash, and marked as text of others. */
export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly [member: string]: unknown }[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
  readonly _meta: Readonly<Record<string, unknown>>
}

/** Marks a result. A mark of the same name that the server sent is replaced. */
export function markedResult({ content, structuredContent, isError, _meta = {} }: CallToolResult, tool: CallableTool): ToolAnswer {
  const kept = Object.entries(_meta).filter(([name]) => !name.startsWith(protocolMeta))
  return {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    _meta: {
      ...Object.fromEntries(kept),
      [originMetaKey]: { server: tool.slug, tool: tool.upstreamName, hash: tool.hash, untrusted: true },
    },
  }
}
