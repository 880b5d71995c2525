/** What of a request depends on the model that serves it: done anew for each attempt, from the original. */
import type { HubRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import type { ParsedRequest } from './kinds/request.ts'

export interface Prepared {
  readonly hub: HubRequest
  /** x-br-* headers that say what was done. */
  readonly headers: Readonly<Record<string, string>>
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** The hub request for an attempt. A promise only when something has to be worked on. */
export function prepare(request: ParsedRequest, _attempt: Attempt): Prepared | Promise<Prepared> {
  return { hub: request.hub, headers: noHeaders }
}
