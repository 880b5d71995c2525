import type { CatalogSnapshot } from '../../gateway/catalog/model.ts'
import { CredentialsError } from '../../gateway/cloud/authorise.ts'
import type { Identities } from '../../gateway/cloud/identities.ts'
import type { Provider } from '../../gateway/providers/provider.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Finding } from './finding.ts'

/** How long the doctor waits for the credentials of one identity. */
const waitMs = 3_000

interface IdentityDeps {
  readonly identities: Pick<Identities, 'of'>
  readonly clock: Clock
}

/** Gets the credentials of this process for each provider that uses them, all at the same time, and says where they come from and when they end. */
export function checkIdentities({ providers }: Pick<CatalogSnapshot, 'providers'>, deps: IdentityDeps): Promise<Finding[]> {
  return Promise.all(
    [...providers.values()].filter(({ usesIdentity, configured }) => usesIdentity === true && configured).map(provider => findingOf(provider, deps)),
  )
}

async function findingOf(provider: Provider, { identities, clock }: IdentityDeps): Promise<Finding> {
  const what = `identity for ${provider.id}`
  let stop = (): void => undefined
  const late = new Promise<never>((_done, refuse) => {
    stop = clock.after(waitMs, () => refuse(new CredentialsError(`the credentials did not come within ${waitMs / 1000} s`)))
  })
  try {
    const authoriser = identities.of(provider, 'process')
    // The request is signed, and never sent.
    await Promise.race([authoriser.authorise({ method: 'GET', url: `${provider.baseUrl}/models`, headers: {} }, clock.nowMs()), late])
    const { source, endMs } = authoriser.describe()
    return { what, state: 'ok', detail: `${source}${endMs === null ? '' : `, ends ${new Date(endMs).toISOString()}, is renewed before`}` }
  } catch (error) {
    const why = error instanceof CredentialsError ? error.message : 'the credentials could not be had'
    return { what, state: 'wrong', detail: `${why}. Calls to ${provider.name} fail or go to other providers.` }
  } finally {
    stop()
  }
}
