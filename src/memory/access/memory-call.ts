/** The arguments and results of shared memory's calls. This file holds types only, so every other file may import it. */
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import type { StoreRow } from '../objects/queries.ts'
import type { AuthorView } from '../provenance.ts'
import type { ObjectStore } from '../stores/object-store.ts'

/** Who makes the call, and the signal that says whether the caller still waits. */
export interface MemoryCall {
  readonly principal: BearerPrincipal
  readonly agentLabel: string | null
  /** The name that an MCP client gives itself; it is not verified. */
  readonly clientName?: string
  readonly signal: AbortSignal
}

export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
}

/** The change of a key, as change events name it. */
export type ChangeAction = 'put' | 'append' | 'restore' | 'promote' | 'delete' | 'expire'

/** Options that a caller inside the gateway adds to a write; they never come from a request. */
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
