/** What of a request depends on the model that serves it: done anew for each attempt, from the original. */
import type { HubRequest } from '../providers/dialect.ts'
import type { Attempt } from '../routing/plan.ts'
import type { ParsedRequest } from './kinds/request.ts'
import { capAdvisory, withKnownEffort } from './reasoning.ts'

export interface Prepared {
  readonly hub: HubRequest
  /** x-br-* headers that say what was done. */
  readonly headers: Readonly<Record<string, string>>
}

/** The hub request for an attempt. A promise only when something has to be worked on. Throws `bad_request`. */
export function prepare(request: ParsedRequest, attempt: Attempt): Prepared | Promise<Prepared> {
  return { hub: withKnownEffort(request.hub, attempt), headers: capAdvisory(request, attempt.model) }
}
