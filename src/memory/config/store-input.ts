/** Converts the body of `PUT /v1/me/memory-store` to the bucket or folder that it names. */
import { fail } from '../../platform/errors.ts'
import type { GatewayBuckets } from '../stores/gateway-buckets.ts'
import type { StoreAccess } from '../stores/s3/s3-options.ts'
import type { Credentials, S3Place, StorePlace } from './open-stores.ts'

/**
 * The body of `PUT /v1/me/memory-store`. Blank or absent credentials leave the stored credentials unchanged. An absent number keeps its stored value, or
 * gets its default.
 */
export interface StoreInput {
  readonly store?: 's3' | 'folder' | undefined
  readonly endpoint?: string | undefined
  readonly bucket?: string | undefined
  readonly access_key?: string | undefined
  readonly secret_key?: string | undefined
  readonly region?: string | undefined
  readonly credentials?: StoreAccess['credentials'] | undefined
  readonly role_arn?: string | undefined
  readonly addressing?: StoreAccess['addressing'] | undefined
  readonly sse?: StoreAccess['sse'] | undefined
  readonly kms_key_id?: string | undefined
  readonly quota_mb?: number | undefined
  readonly journal_ttl_days?: number | undefined
  readonly history_versions?: number | undefined
  readonly history_days?: number | undefined
  readonly confirm_path_change?: boolean | undefined
  /** True to probe the store even when neither its place nor its credentials changed. */
  readonly reprobe?: boolean | undefined
}

const regionDefault = 'us-east-1'
/** The default of quota_mb, which the specification sets. A MB is 1,048,576 bytes, which the project chose. */
export const quotaMbDefault = 1024

export interface PlaceRules {
  readonly isFolderAllowed: boolean
  readonly gatewayBuckets: GatewayBuckets
}

/** Returns the requested place. A blank field keeps its value in `before`. Throws `bad_request`. */
export function placeFrom(orgId: number, input: StoreInput, before: StorePlace | null, rules: PlaceRules): StorePlace {
  const kind = input.store ?? (isBlank(input.endpoint) && isBlank(input.bucket) ? (before?.store ?? 's3') : 's3')
  if (kind === 'folder') {
    if (!rules.isFolderAllowed)
      throw fail('bad_request', {
        message: 'A folder store is for the embedded database, or for operators who set FOLDER_STORE=on. Configure an S3-compatible bucket.',
      })
    if (!isBlank(input.endpoint) || !isBlank(input.bucket)) throw fail('bad_request', { message: 'A folder store takes no endpoint and no bucket.' })
    return { store: 'folder' }
  }
  const stored = before?.store === 's3' ? before : null
  const bucket = isBlank(input.bucket) ? stored?.bucket : input.bucket
  if (bucket === undefined) throw fail('bad_request', { message: 'A memory store needs a bucket, and an endpoint or a region of AWS.' })
  if (bucket.endsWith('--x-s3')) throw fail('bad_request', { message: 'Directory buckets of S3 Express cannot hold memory. Name a bucket of the usual kind.' })
  const access = accessFrom(input, stored?.access ?? null)
  if (access.credentials === 'gateway') return gatewayPlace(orgId, input, bucket, access, rules.gatewayBuckets)
  const region = isBlank(input.region) ? (stored?.region ?? regionDefault) : input.region
  const endpoint = endpointOf(input, stored)
  const credentials = access.credentials === 'keys' ? credentialsFrom(input, stored?.credentials ?? null) : null
  return { store: 's3', endpoint, bucket, region, credentials, access }
}

/**
 * Returns the new quota. On a store that the operator pays for, the quota is at most `operatorMaxMb`. There, 0 means no bound. A default quota, or a quota
 * that was set for another store, is reduced to that bound. Throws `bad_request` when the request asks for more.
 */
export function quotaMbFrom({ quota_mb: requested }: StoreInput, before: number | null, place: StorePlace, operatorMaxMb: number): number {
  const isOperators = place.store === 'folder' || place.access.credentials === 'gateway'
  if (!isOperators || operatorMaxMb === 0) return requested ?? before ?? quotaMbDefault
  if (requested !== undefined && requested > operatorMaxMb)
    throw fail('bad_request', {
      message: `Field "quota_mb": at most ${operatorMaxMb} on a store that the operator pays for (MEMORY_QUOTA_MAX_MB). Use less, or configure a bucket of yours.`,
    })
  return Math.min(requested ?? before ?? quotaMbDefault, operatorMaxMb)
}

/**
 * Returns a place in a bucket of the operator. Only the operator sets its endpoint and region, so an organisation cannot choose where the gateway sends its
 * signature.
 */
function gatewayPlace(orgId: number, input: StoreInput, bucket: string, access: StoreAccess, buckets: GatewayBuckets): S3Place {
  const named = buckets.find(orgId, bucket)
  if (named === null)
    throw fail('bad_request', { message: 'The operator has not named this bucket for this organisation in MEMORY_ROLE_BUCKETS. Use keys, or a role of yours.' })
  if (!isBlank(input.endpoint) || !isBlank(input.access_key) || !isBlank(input.role_arn))
    throw fail('bad_request', { message: 'With credentials "gateway" the operator says where the bucket is: send no endpoint, no keys and no role_arn.' })
  if ((input.sse ?? 'bucket') !== 'bucket' || !isBlank(input.kms_key_id))
    throw fail('bad_request', {
      message: 'With credentials "gateway" the bucket of the operator says how objects are encrypted: send no sse and no kms_key_id.',
    })
  return { store: 's3', ...named, credentials: null, access: { ...access, sse: 'bucket', kmsKeyId: null } }
}

function accessFrom(input: StoreInput, stored: StoreAccess | null): StoreAccess {
  const asked = isBlank(input.role_arn) ? (isBlank(input.access_key) ? undefined : 'keys') : 'role'
  const credentials = input.credentials ?? asked ?? stored?.credentials ?? 'keys'
  const roleArn = credentials !== 'role' ? null : isBlank(input.role_arn) ? (stored?.roleArn ?? null) : input.role_arn
  if (credentials === 'role' && (roleArn === null || !/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/.test(roleArn)))
    throw fail('bad_request', { message: 'Field "role_arn": the ARN of a role, as arn:aws:iam::123456789012:role/brigade-memory.' })
  const sse = input.sse ?? stored?.sse ?? 'bucket'
  const kmsKeyId = sse === 'bucket' ? null : isBlank(input.kms_key_id) ? (stored?.kmsKeyId ?? null) : input.kms_key_id
  return { credentials, roleArn, addressing: input.addressing ?? stored?.addressing ?? 'auto', sse, kmsKeyId }
}

/** Returns the endpoint of the place. Null means AWS in the region. */
function endpointOf(input: StoreInput, stored: S3Place | null): string | null {
  if (!isBlank(input.endpoint)) return endpointFrom(input.endpoint)
  if (stored !== null) return stored.endpoint
  if (isBlank(input.region)) throw fail('bad_request', { message: 'A memory store needs an endpoint, or a region of AWS, and a bucket.' })
  return null
}

function credentialsFrom(input: StoreInput, stored: Credentials | null): Credentials {
  const accessKey = isBlank(input.access_key) ? stored?.accessKey : input.access_key
  const secretKey = isBlank(input.secret_key) ? stored?.secretKey : input.secret_key
  if (accessKey === undefined || secretKey === undefined)
    throw fail('bad_request', { message: 'A memory store needs access_key and secret_key the first time, or a role_arn.' })
  return { accessKey, secretKey }
}

function isBlank(text: string | undefined): text is undefined {
  return text === undefined || text.trim() === ''
}

/** Normalises the spelling of an endpoint, so that a trailing slash does not count as another place. */
function endpointFrom(text: string): string {
  if (!URL.canParse(text)) throw fail('bad_request', { message: 'The endpoint must be a URL.' })
  const url = new URL(text)
  if (url.search !== '' || url.hash !== '') throw fail('bad_request', { message: 'The endpoint must be a URL without a query.' })
  return url.href.replace(/\/+$/, '')
}

/** Returns whether the store contains the same objects before and after the change. */
export function isSamePlace(before: StorePlace, place: StorePlace): boolean {
  if (before.store === 'folder' || place.store === 'folder') return before.store === place.store
  return before.endpoint === place.endpoint && before.bucket === place.bucket
}

/** Returns whether the store is reached in the same way before and after the change. */
export function isSameAccess(a: StorePlace, b: StorePlace): boolean {
  if (a.store === 'folder' || b.store === 'folder') return a.store === b.store
  if (a.region !== b.region || a.credentials?.accessKey !== b.credentials?.accessKey || a.credentials?.secretKey !== b.credentials?.secretKey) return false
  return (['credentials', 'roleArn', 'addressing', 'sse', 'kmsKeyId'] as const).every(name => a.access[name] === b.access[name])
}
