/** Memory objects: read, write, delete, list. Scope comes before existence everywhere, so a refusal says nothing about what is there. */
import type { Clock } from '../platform/clock.ts'
import type { Ids } from '../platform/ids.ts'
import type { BearerPrincipal } from '../platform/principal.ts'
import type { MemoryCallers } from './callers.ts'
import type { ListPageView, ListWish } from './list-page.ts'
import type { MemoryIndex } from './memory-index.ts'
import { MemoryReads } from './object-reads.ts'
import type { ObjectStore } from './object-store.ts'
import { MemoryWrites } from './object-writes.ts'
import type { AuthorView } from './provenance.ts'
import type { StoreRow } from './queries.ts'

/** Who asks, and how long there is somebody to answer. */
export interface MemoryCall {
  readonly principal: BearerPrincipal
  readonly agentLabel: string | null
  readonly signal: AbortSignal
}

export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

/** What happened to a key, as news of changes say it. */
export type ChangeAction = 'put' | 'append' | 'restore' | 'promote' | 'delete' | 'expire'

/** What a caller inside the gateway adds to a write; never from a request. */
export interface WriteExtras {
  /** Beside the provenance that every write gets, and below it: names as `br-promoted-by`, values printable ASCII. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Default `put`. With `promote` the caller has checked the right to write; the rules of scopes are not asked. */
  readonly action?: Exclude<ChangeAction, 'delete' | 'expire'>
}

export interface RemoveExtras {
  /** Removes the versions of the key too; nothing of it can be read or restored afterwards. */
  readonly erasesHistory?: boolean
}

export interface ReadResult {
  readonly bytes: Buffer
  readonly etag: string
  readonly modified: Date
  /** Provenance as reply headers. */
  readonly metaHeaders: Readonly<Record<string, string>>
}

export interface ListEntry {
  /** As `?key=` takes it. */
  readonly key: string
  readonly size: number
  readonly modified: string
  readonly etag: string
  readonly author: AuthorView | null
}

export interface ConfiguredStore {
  readonly row: StoreRow
  readonly store: ObjectStore
}

export interface MemoryObjectsDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly index: MemoryIndex
  readonly callers: MemoryCallers
  readonly objectBytesMax: number
  /** Life of an intent: the store's part of a write is cut off well before that. */
  readonly intentMs: number
  /** Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  /** Looks the configuration up anew the next time. */
  forget(orgId: number): void
  /** The registered agent that a label names; null when it names none. */
  agentByLabel(orgId: number, label: string): { readonly status: 'active' | 'revoked' } | null | Promise<{ readonly status: 'active' | 'revoked' } | null>
}

/** The object calls as one service. */
export class MemoryObjects {
  readonly reads: MemoryReads
  readonly writes: MemoryWrites

  constructor(deps: MemoryObjectsDeps) {
    this.reads = new MemoryReads(deps)
    this.writes = new MemoryWrites(deps)
  }

  /** One object. See `MemoryReads.read`. */
  read(call: MemoryCall, keyText: string): Promise<ReadResult> {
    return this.reads.read(call, keyText)
  }

  /** Every readable key under a prefix. See `MemoryReads.list`. */
  list(call: MemoryCall, prefixText: string): Promise<ListEntry[]> {
    return this.reads.list(call, prefixText)
  }

  /** One page of a list. See `MemoryReads.listPage`. */
  listPage(call: MemoryCall, prefixText: string, wish: ListWish): Promise<ListPageView> {
    return this.reads.listPage(call, prefixText, wish)
  }

  /** Writes one object. See `MemoryWrites.write`. */
  write(call: MemoryCall, keyText: string, bytes: Buffer, conditions: Conditions = {}, extras: WriteExtras = {}): Promise<{ etag: string }> {
    return this.writes.write(call, keyText, bytes, conditions, extras)
  }

  /** Deletes one object. See `MemoryWrites.remove`. */
  remove(call: MemoryCall, keyText: string, conditions: Conditions = {}, extras: RemoveExtras = {}): Promise<void> {
    return this.writes.remove(call, keyText, conditions, extras)
  }
}
