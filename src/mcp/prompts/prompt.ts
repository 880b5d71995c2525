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

/** A prompt of this server. Only a caller that may call the row of `rowOf` sees the prompt. */
export interface Prompt {
  readonly entry: PromptEntry
  rowOf(rows: McpRows): AnyRow
  /** Returns the messages of the prompt. `args` are the arguments of `entry`, and all required ones are present. Throws SurfaceError. */
  write(args: Readonly<Record<string, string>>, deps: PromptDeps, signal: AbortSignal): Promise<PromptMessage[]>
}
