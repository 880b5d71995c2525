import type { ActivitySearch } from '../activity/filters.ts'
import type { Kind, Outcome } from './text.ts'

/** The span and the filters, the search, and the call that is open beside the list. */
export type CallsSearch = ActivitySearch & {
  readonly outcome?: Outcome
  readonly kind?: Kind
  /** The search by request id. */
  readonly request_id?: string
  /** The request id of the open call. */
  readonly call?: string
  readonly live?: true
}
