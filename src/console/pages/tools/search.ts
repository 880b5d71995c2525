import type { ReplyOf } from '../../api/call.ts'
import type { Outcome } from '../calls/text.ts'

/** What the addresses of the pages of tools say. */

export const toolsTabs = ['servers', 'connections', 'calls'] as const
export type ToolsTab = (typeof toolsTabs)[number]

/** `server` and `outcome` filter the calls, and `new` opens the form for another server. */
export interface ToolsSearch {
  readonly tab?: Exclude<ToolsTab, 'servers'>
  readonly server?: string
  readonly outcome?: Outcome
  readonly new?: true
}

type PinState = ReplyOf<'listServerTools'>['tools'][number]['state']

export const serverTabs = ['tools', 'connections', 'settings'] as const
export type ServerTab = (typeof serverTabs)[number]

export const pinStates: readonly PinState[] = ['pending', 'changed', 'approved', 'blocked', 'gone']

/** `state` filters the tools of a server, and `tool` shows one of them. */
export interface ServerSearch {
  readonly tab?: Exclude<ServerTab, 'tools'>
  readonly state?: PinState
  readonly tool?: string
}
