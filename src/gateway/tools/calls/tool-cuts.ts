import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import type { Inflight } from '../../../platform/loop/inflight.ts'
import { toolBlocked, toolConnectionEnded, toolServerChanged, toolServerOff } from '../registry/tool-news.ts'

/** The owner of the running calls of a tool. */
export const toolOwner = (toolId: string): string => `tool:${toolId}`
/** The owner of the running calls of all tools of a server. */
export const toolServerOwner = (serverId: string): string => `tool_server:${serverId}`

/** The owner of the running calls that use a connection. */
export const toolConnectionOwner = (connectionId: string): string => `tool_connection:${connectionId}`

/**
 * Ends the running calls of a tool that is blocked, and of a server that is switched off, removed, or gets another address or credential, and of a
 * connection that ended, in every process that gets the news. Every end of `everyToolCall` is in the kill switch of agents, which watches the age of the news.
 */
export function cutToolCalls(controlLog: Pick<ControlLog, 'on'>, inflight: Pick<Inflight, 'abortToken'>): void {
  controlLog.on(({ kind, ref }) => {
    if (kind === toolBlocked) inflight.abortToken(toolOwner(ref), 'tool_blocked')
    else if (kind === toolServerOff) inflight.abortToken(toolServerOwner(ref), 'tool_server_off')
    else if (kind === toolServerChanged) inflight.abortToken(toolServerOwner(ref), 'tool_server_changed')
    else if (kind === toolConnectionEnded) inflight.abortToken(toolConnectionOwner(ref), 'tool_connection_ended')
  })
}
