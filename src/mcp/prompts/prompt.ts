import type { Clock } from '../../platform/clock.ts'
import type { AnyRow } from '../../platform/endpoint.ts'
import type { McpRows } from '../mcp-rows.ts'
import type { RowReader } from '../row-reader.ts'
import type { PromptEntry, PromptMessage } from '../surface.ts'

export interface PromptDeps {
  readonly rows: McpRows
  readonly reader: RowReader
  readonly clock: Clock
}

/** A prompt of this server. The caller must be allowed to call the row that `rowOf` returns. */
export interface Prompt {
  readonly entry: PromptEntry
  rowOf(rows: McpRows): AnyRow
  /** Returns the messages of the prompt. The arguments are those of `entry`, and the required ones are present. Throws SurfaceError. */
  write(args: Readonly<Record<string, string>>, deps: PromptDeps, signal: AbortSignal): Promise<PromptMessage[]>
}
