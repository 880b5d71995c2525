import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { HeldReplies } from '../../platform/outbound/held-replies.ts'
import type { Ids } from '../../platform/values/ids.ts'
import type { MemoryCallers } from '../access/callers.ts'
import type { ConfiguredStore } from '../access/memory-call.ts'
import type { MemoryIndex } from './index/memory-index.ts'

/** The dependencies of reading and writing objects. */
export interface MemoryObjectsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly index: MemoryIndex
  readonly callers: MemoryCallers
  readonly objectBytesMax: number
  /** Time after which an intent expires. A request to the store is aborted well before this time is over. */
  readonly intentMs: number
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  /** Drops the cached configuration, so that the next call reads it again. */
  forget(orgId: number): void
  /** Room for whole lists. When it is left out, there is no limit. */
  readonly heldReplies?: Pick<HeldReplies, 'run'> | undefined
  /** Returns the founder of an organisation. Founders have shares of the places for lists. */
  founderOf(orgId: number): string
  /** Returns the registered agent that a label names. Returns null when the label names no agent. */
  agentByLabel(orgId: number, label: string): { readonly status: 'active' | 'revoked' } | null | Promise<{ readonly status: 'active' | 'revoked' } | null>
}
