import type { TracePlace } from '../../../platform/observe/tracing.ts'
import type { ToolCall } from './tool.ts'

/** A tool that runs. */
export interface WatchedTool {
  /** What the calls of the tool are told of where they stand. */
  readonly below: { readonly trace?: TracePlace }
  end(isOk: boolean): void
}

/** Told of tool calls for figures and traces. It must not throw. */
export interface ToolWatch {
  begin(tool: string, call: ToolCall): WatchedTool
}
