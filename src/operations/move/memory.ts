/** Moves memory from folders to a bucket. It copies the objects and changes the rows that say where they are. */
import { join } from 'node:path'
import { type MovedObjects, moveFolder } from '../../memory/config/folder-move.ts'
import { storeOwner } from '../../memory/config/open-stores.ts'
import { type Capabilities, probe } from '../../memory/config/store-probe.ts'
import { S3Store } from '../../memory/stores/s3/object-store-s3.ts'
import { fixedKeys } from '../../memory/stores/s3/s3-options.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Config } from '../../platform/config.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { makeUrlGuard } from '../../platform/outbound/url-guard.ts'
import type { Secret } from '../../platform/security/secret.ts'
import { makeSealer, maskSecret } from '../../platform/security/secrets.ts'
import type { Ids } from '../../platform/values/ids.ts'
import { folderOrgIds, placeObjects, placeStore } from './move-queries.ts'

/** A bucket in any store with the S3 API. */
export interface BucketPlace {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKey: string
  readonly secretKey: Secret
}

/** The result of moving the memory of one organisation. */
export interface MovedMemory extends Pick<MovedObjects, 'objects' | 'bytes' | 'sha256'> {
  readonly orgId: number
}

interface MovedWithEtags extends MovedMemory, MovedObjects {
  readonly capabilities: Capabilities
}

/** Returns the organisations whose memory is in a folder. */
export async function folderOrgs(db: Queryable): Promise<number[]> {
  return (await db.many(folderOrgIds)).map(row => row.orgId)
}

/**
 * Copies the objects of these organisations and checks each copy. Throws `bad_request` for an endpoint that OUTBOUND_ALLOW does not permit. Also
 * throws `unavailable` and StrangeObjectError.
 */
export async function moveMemory(
  orgIds: readonly number[],
  place: BucketPlace,
  deps: { readonly config: Config; readonly clock: Clock; readonly ids: Ids; readonly dataDir: string; readonly progress: (line: string) => void },
): Promise<MovedWithEtags[]> {
  const { config, clock, ids, dataDir, progress } = deps
  const guard = makeUrlGuard(config.OUTBOUND_ALLOW)
  const endpoint = new URL(place.endpoint)
  // The gateway makes the same check when it opens the store.
  guard.check(endpoint)
  const { bucket, region, secretKey } = place
  const keys = fixedKeys(place.accessKey, secretKey.reveal())
  const lookupFor = guard.lookupFor.bind(guard)
  const bounds = { timeoutMs: config.STORE_TIMEOUT_MS, objectBytesMax: config.MEMORY_OBJECT_MAX_BYTES }
  const store = new S3Store({ endpoint: place.endpoint, bucket, region, keys, ...bounds, lookupFor, clock, ids })
  try {
    const moved: MovedWithEtags[] = []
    for (const orgId of orgIds) {
      const capabilities = await probe(store, orgId, clock, ids)
      const objects = await moveFolder(join(dataDir, 'memory', `org-${orgId}`), orgId, store)
      progress(`memory of organisation ${orgId}: ${objects.objects} objects, ${objects.bytes} bytes`)
      moved.push({ orgId, capabilities, ...objects })
    }
    return moved
  } finally {
    store.close()
  }
}

/**
 * Changes the rows to point to the bucket. The generation stays the same. So a write that was in progress when the gateway died is settled later by
 * reading the bucket, which has the same content as the folder. A row gets the new etag only if its old etag was that of the folder. The reconcile is
 * due immediately and corrects any other row.
 */
export async function placeMemory(tx: Tx, moved: readonly MovedWithEtags[], place: BucketPlace, masterKey: Buffer): Promise<void> {
  const sealer = makeSealer(masterKey)
  const credentials = JSON.stringify({ accessKey: place.accessKey, secretKey: place.secretKey.reveal() })
  for (const { orgId, capabilities, etags } of moved) {
    await tx.exec(
      placeStore,
      orgId,
      place.endpoint,
      place.bucket,
      place.region,
      sealer.seal(credentials, storeOwner(orgId)),
      maskSecret(place.accessKey),
      capabilities.casPut,
      capabilities.casDelete,
      BigInt(Math.round(capabilities.clockSkewMs)),
      JSON.stringify(capabilities.details),
    )
    await tx.exec(
      placeObjects,
      orgId,
      etags.map(({ key }) => key),
      etags.map(({ before }) => before),
      etags.map(({ after }) => after),
    )
  }
}
