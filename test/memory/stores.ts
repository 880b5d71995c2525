/** The three stores that run the object store contract: a folder, the S3 test server, and Swift where it is installed. */

import { lookup } from 'node:dns'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3'
import { inject } from 'vitest'
// biome-ignore lint/correctness/useImportExtensions: the script is JavaScript; its types are in the .d.mts beside it.
import { isSwiftInstalled } from '../../scripts/swift-s3.mjs'
import type { StoreInput } from '../../src/memory/config/store-input.ts'
import type { ObjectStore } from '../../src/memory/stores/object-store.ts'
import { FolderStore } from '../../src/memory/stores/object-store-folder.ts'
import { S3Store } from '../../src/memory/stores/s3/object-store-s3.ts'
import { fixedKeys, type S3StoreOptions } from '../../src/memory/stores/s3/s3-options.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { startS3Server } from '../harness/s3-server.ts'
import { sharedSwift } from '../harness/shared-swift.ts'

export interface Peer {
  readonly store: ObjectStore
  /** The configuration with which a gateway uses this store. */
  readonly input: StoreInput
  /** The `host:port` for OUTBOUND_ALLOW. Null for the folder. */
  readonly hostPort: string | null
  close(): Promise<void>
}

export interface PeerKind {
  readonly name: string
  readonly isInstalled: boolean
  readonly hasConditions: boolean
  start(): Promise<Peer>
}

export function s3Store(
  options: Pick<S3StoreOptions, 'endpoint' | 'bucket' | 'inTurn'> & { accessKey: string; secretKey: string; timeoutMs?: number; objectBytesMax?: number },
): S3Store {
  return new S3Store({
    endpoint: options.endpoint,
    bucket: options.bucket,
    region: 'us-east-1',
    keys: fixedKeys(options.accessKey, options.secretKey),
    timeoutMs: options.timeoutMs ?? 20_000,
    objectBytesMax: options.objectBytesMax ?? 1024 * 1024,
    lookupFor: () => lookup,
    clock: systemClock,
    ids: systemIds,
    inTurn: options.inTurn,
  })
}

export const peers: readonly PeerKind[] = [
  {
    name: 'a folder',
    isInstalled: true,
    hasConditions: true,
    async start() {
      const root = await mkdtemp(join(tmpdir(), 'brigade-folder-'))
      return {
        store: new FolderStore({ root, clock: systemClock, ids: systemIds }),
        input: { store: 'folder' },
        hostPort: null,
        close: () => rm(root, { recursive: true, force: true }),
      }
    },
  },
  {
    name: 'the S3 test server',
    isInstalled: true,
    hasConditions: true,
    async start() {
      const server = await startS3Server()
      const store = s3Store(server)
      return {
        store,
        input: { endpoint: server.endpoint, bucket: server.bucket, access_key: server.accessKey, secret_key: server.secretKey },
        hostPort: server.hostPort,
        async close() {
          store.close()
          await server.close()
        },
      }
    },
  },
  {
    name: 'OpenStack Swift',
    isInstalled: isSwiftInstalled(),
    hasConditions: false,
    async start() {
      const swift = await sharedSwift(inject('swiftOffer'))
      const bucket = `memory-${systemIds.uuidv7(systemClock.nowMs())}`
      const client = new S3Client({
        endpoint: swift.endpoint,
        region: swift.region,
        forcePathStyle: true,
        credentials: { accessKeyId: swift.accessKey, secretAccessKey: swift.secretKey },
      })
      await client.send(new CreateBucketCommand({ Bucket: bucket }))
      client.destroy()
      const store = s3Store({ ...swift, bucket })
      return {
        store,
        input: { endpoint: swift.endpoint, bucket, access_key: swift.accessKey, secret_key: swift.secretKey, region: swift.region },
        hostPort: swift.hostPort,
        close: async () => store.close(),
      }
    },
  },
]
