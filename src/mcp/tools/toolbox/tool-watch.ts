import type { TracePlace } from '../../../platform/observe/tracing.ts'
import type { ToolCall } from './tool.ts'

/** A running tool. */
export interface WatchedTool {
  /** The position in the trace of the calls that the tool makes. */
  readonly below: { readonly trace?: TracePlace }
  end(isOk: boolean): void
}

/** Receives tool calls for metrics and traces. It must not throw. */
export interface ToolWatch {
  begin(tool: string, call: ToolCall): WatchedTool
}
