import type { TracePlace } from '../../../platform/observe/tracing.ts'
import type { ToolCall } from './tool.ts'

/** A tool that runs. */
export interface WatchedTool {
  /** Reports the progress of a tool's calls. */
  readonly below: { readonly trace?: TracePlace }
  end(isOk: boolean): void
}

/** Receives tool calls for metrics and traces. It must not throw. */
export interface ToolWatch {
  begin(tool: string, call: ToolCall): WatchedTool
}
