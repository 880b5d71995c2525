/** What the address of the page says. */

export const actorKinds = ['user', 'key', 'agent', 'operator', 'system'] as const
export type ActorKind = (typeof actorKinds)[number]

/** The filters of the trail, as the gateway takes them. Days are those of India, both included. */
export interface AuditFilters {
  /** A kind of actors, or one actor such as `user:12`. */
  readonly actor?: string
  readonly act?: string
  readonly from?: string
  readonly to?: string
}

/** `line` opens one line beside the list. */
export interface AuditSearch extends AuditFilters {
  readonly tab?: 'verify'
  readonly line?: number
}
