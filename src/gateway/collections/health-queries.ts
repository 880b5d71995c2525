import { statement } from '../../platform/db.ts'

export interface HealthSum {
  readonly model: string
  readonly pinned: string
  /** -1: failed; else the bucket of its latency. */
  readonly bucket: number
  readonly checks: number
}

/** Sums of all steps that the collection ever had: hours from `hour` on and days from `day` on. */
export const sumHealth = statement<[orgId: number, collectionId: number, day: Date, hour: Date], HealthSum>(
  'collections.sum_health',
  `select model, pinned, bucket::int as "bucket", sum(checks)::int as "checks" from collection_health
   where org_id = $1::int and collection_id = $2::int and starts_at >= $3::timestamptz and (is_day or starts_at >= $4::timestamptz)
   group by 1, 2, 3`,
)

export interface LastCanary {
  readonly model: string
  readonly pinned: string
  readonly at: Date
  readonly provider: string | null
  readonly ok: boolean
  readonly code: string | null
}

export const listCanaries = statement<[orgId: number, collectionId: number], LastCanary>(
  'collections.list_canaries',
  'select model, pinned, at, provider, ok, code from collection_canaries where org_id = $1::int and collection_id = $2::int',
)
