/** What the calls of shared memory take and give. Types alone, so that everything can stand on them. */
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import type { StoreRow } from '../objects/queries.ts'
import type { AuthorView } from '../provenance.ts'
import type { ObjectStore } from '../stores/object-store.ts'

/** Who asks, and how long there is somebody to answer. */
export interface MemoryCall {
  readonly principal: BearerPrincipal
  readonly agentLabel: string | null
  /** What an MCP client calls itself; its own word. */
  readonly clientName?: string
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
