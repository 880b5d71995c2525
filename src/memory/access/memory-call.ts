/** The arguments and results of shared memory's calls. This file holds types only, so every other file may import it. */
import type { Principal } from '../../platform/security/principal.ts'
import type { StoreRow } from '../objects/queries.ts'
import type { AuthorNameView, AuthorView } from '../provenance.ts'
import type { ObjectStore } from '../stores/object-store.ts'

/** The caller, and the signal that aborts when the caller no longer waits. */
export interface MemoryCall {
  readonly principal: Principal
  readonly agentLabel: string | null
  /** The name that an MCP client gives itself. It is not verified. */
  readonly clientName?: string
  readonly signal: AbortSignal
}

export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

/** The change of a key, as change events name it. */
export type ChangeAction = 'put' | 'append' | 'restore' | 'promote' | 'delete' | 'expire'

/** Options that a caller inside the gateway adds to a write. They never come from a request. */
export interface WriteExtras {
  /**
   * Metadata in addition to the provenance of every write. Where both have the same name, the provenance wins. Names are like `br-promoted-by`, and values
   * are printable ASCII.
   */
  readonly metadata?: Readonly<Record<string, string>>
  /** The default is `put`. With `promote` the path rules are not applied, because the caller has already checked the right to write. */
  readonly action?: Exclude<ChangeAction, 'delete' | 'expire'>
}

export interface RemoveExtras {
  /** Also removes all versions of the key, so that nothing can be read or restored afterwards. */
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
  /** The key in the form that `?key=` accepts. */
  readonly key: string
  readonly size: number
  readonly modified: string
  readonly etag: string
  readonly author: AuthorView | null
}

/** An entry of a list with the names of its author. */
export type NamedEntry = ListEntry & AuthorNameView

export interface ConfiguredStore {
  readonly row: StoreRow
  readonly store: ObjectStore
}
