import type { Clock } from '../../platform/clock.ts'
import { BlockedAddressError, type UrlGuard } from '../../platform/url-guard.ts'

/** Saving an endpoint does not wait longer for a name server. */
const patienceMs = 2_000

/**
 * Whether the host of a URL is known to lead where a user may not go: `localhost`, names of the own network. A name that does not resolve
 * now is let pass, because every dial looks again.
 */
export function leadsInside(url: URL, guard: UrlGuard, clock: Clock): Promise<boolean> {
  if (guard.isAllowed(url)) return Promise.resolve(false)
  return new Promise(resolve => {
    const stop = clock.after(patienceMs, () => resolve(false))
    guard.lookup(url.hostname, { all: true }, error => {
      stop()
      resolve(error instanceof BlockedAddressError)
    })
  })
}
