/** Finds where the requests for one bucket go, by the endpoint rules of the AWS SDK: partition and region, and the bucket in the host or in the path. */
import { clientS3 } from './aws-sdk.ts'
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
  rules ??= loadRules()
  const { endpoint, bucket } = place
  const given = endpoint === null ? {} : { Endpoint: endpoint }
  const { url } = rules({ Region: region, Bucket: bucket, ForcePathStyle: isPathForced(place), UseFIPS: false, UseDualStack: false, ...given }, {})
  return new URL(url.href)
}

function loadRules(): Rules {
  const { S3Client } = clientS3()
  const { config } = new S3Client({ region: 'us-east-1', credentials: { accessKeyId: '-', secretAccessKey: '-' } })
  return (config as unknown as { endpointProvider: Rules }).endpointProvider
}
