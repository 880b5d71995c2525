/** Collections, as services of rows. */
import type { AppParts } from './app-services.ts'
import { CollectionRegistry } from './gateway/collections/collection-registry.ts'
import { CollectionSharing } from './gateway/collections/collection-sharing.ts'
import { Collections } from './gateway/collections/collections.ts'
import type { Chains } from './gateway/routing/chains.ts'

export function collectionServices({ db, clock, ids, log, controlLog, config }: AppParts, chains: Chains) {
  const collections = new Collections({ db, clock, ids, controlLog, chains, collectionsMax: config.COLLECTIONS_MAX })
  const collectionRegistry = new CollectionRegistry({ db, clock, log, controlLog })
  const collectionSharing = new CollectionSharing({ db, clock, controlLog, chains, collections, counted: slug => collectionRegistry.counted(slug) })
  return { collections, collectionSharing, collectionRegistry }
}
