import { ConfigError } from '../../platform/config.ts'

/** A bucket for which the gateway signs with its own identity. */
export interface GatewayBucket {
  readonly bucket: string
  readonly region: string
  /** Null means AWS. */
  readonly endpoint: string | null
}

/**
 * The buckets that the operator named in MEMORY_ROLE_BUCKETS, by organisation. The gateway signs with its own identity only for these buckets. The operator
 * also sets their endpoint and region, so no organisation can direct such a signature to another address. Throws ConfigError.
 */
export class GatewayBuckets {
  readonly #named: readonly (GatewayBucket & { readonly orgId: number | null })[]

  /** Whether the operator has set an endpoint. It is an address of the operator's own network, which organisations do not see. */
  readonly hasEndpoint: boolean

  constructor(entries: readonly string[], endpoint: string | null) {
    this.hasEndpoint = endpoint !== null
    this.#named = entries.map(entry => {
      const [, org = '', bucket = '', region = ''] = /^(\*|[1-9]\d{0,9}):([a-z0-9][a-z0-9.-]{1,62})@([a-z0-9-]{1,40})$/.exec(entry) ?? []
      if (bucket === '') throw new ConfigError(`MEMORY_ROLE_BUCKETS must list organisation:bucket@region such as 1:acme-memory@eu-west-1, not "${entry}".`)
      return { orgId: org === '*' ? null : Number(org), bucket, region, endpoint }
    })
  }

  /** Returns the bucket. Returns null when the operator has not named this bucket for this organisation. */
  find(orgId: number, bucket: string): GatewayBucket | null {
    return this.#named.find(named => named.bucket === bucket && (named.orgId === null || named.orgId === orgId)) ?? null
  }
}
