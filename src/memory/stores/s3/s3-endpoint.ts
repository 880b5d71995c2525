/**
 * Finds the URL for the requests of one bucket. The endpoint rules of the AWS SDK decide the partition and the region, and whether the bucket is in the
 * host or in the path.
 */
import { S3Client } from '@aws-sdk/client-s3'
import type { S3StoreOptions } from './s3-options.ts'

type Rules = (parameters: Readonly<Record<string, unknown>>, context: object) => { readonly url: URL }

let rules: Rules | null = null

/** Returns whether the endpoint is AWS, where the region decides the host. */
export function isAwsEndpoint(endpoint: string | null): boolean {
  return endpoint === null || /(^|\.)amazonaws\.com(\.cn)?$/.test(new URL(endpoint).hostname)
}

/** Returns whether the bucket is always in the path of the URL. Otherwise the bucket is in the path only when its name is not valid in a host. */
export function isPathForced({ endpoint, access }: Pick<S3StoreOptions, 'endpoint' | 'access'>): boolean {
  const addressing = access?.addressing ?? 'auto'
  return addressing === 'path' || (addressing === 'auto' && !isAwsEndpoint(endpoint))
}

/** Returns the origin and path of the bucket in a region. Throws Error for an invalid region name. */
export function bucketUrl(place: Pick<S3StoreOptions, 'endpoint' | 'bucket' | 'access'>, region: string): URL {
  rules ??= (new S3Client({ region: 'us-east-1', credentials: { accessKeyId: '-', secretAccessKey: '-' } }).config as unknown as { endpointProvider: Rules })
    .endpointProvider
  const { endpoint, bucket } = place
  const given = endpoint === null ? {} : { Endpoint: endpoint }
  const { url } = rules({ Region: region, Bucket: bucket, ForcePathStyle: isPathForced(place), UseFIPS: false, UseDualStack: false, ...given }, {})
  return new URL(url.href)
}
