import { statement } from '../../../platform/db/db.ts'

/** Sums of one model over all organisations, for a long window and for a short window. Both windows end on the same day. */
export interface ModelSumsRow {
  readonly model: string
  readonly longRequests: bigint
  readonly longTokens: bigint
  readonly requests: bigint
  readonly tokens: bigint
  readonly succeeded: bigint
  readonly failed: bigint
  readonly writtenTokens: bigint
  readonly writtenMs: bigint
}

const recent = (column: string): string => `coalesce(sum(${column}) filter (where day >= $2::date), 0)::bigint`

/** Returns sums by model for the requested models. The long window is from `longFrom` to `to`, and the short one from `shortFrom` to `to`. */
export const sumModels = statement<[longFrom: string, shortFrom: string, to: string, models: readonly string[]], ModelSumsRow>(
  'usage.sum_models',
  `select model as "model", sum(requests)::bigint as "longRequests", sum(tokens)::bigint as "longTokens", ${recent('requests')} as "requests",
     ${recent('tokens')} as "tokens", ${recent('succeeded')} as "succeeded", ${recent('failed')} as "failed",
     ${recent('written_tokens')} as "writtenTokens", ${recent('written_ms')} as "writtenMs"
   from model_days where day between $1::date and $3::date and model = any($4::text[]) group by model order by model`,
)

export interface LatencyRow {
  readonly model: string
  readonly bucket: number
  readonly requests: bigint
}

/** Returns the number of served calls by model and latency bucket, fastest bucket first. */
export const sumLatencies = statement<[from: string, to: string, models: readonly string[]], LatencyRow>(
  'usage.sum_latencies',
  `select model as "model", bucket as "bucket", sum(requests)::bigint as "requests"
   from model_latencies where day between $1::date and $2::date and model = any($3::text[]) group by model, bucket order by model, bucket`,
)

export interface ModelUsersRow {
  readonly model: string
  /** Number of organisations with calls in the long window. The next field is the number for the short window. */
  readonly longOrganisations: number
  readonly organisations: number
}

/** Counts the organisations that have used each of these models. The windows are those of `sumModels`. */
export const countModelUsers = statement<[longFrom: string, shortFrom: string, to: string, models: readonly string[]], ModelUsersRow>(
  'usage.count_model_users',
  `select model as "model", count(distinct org_id)::int as "longOrganisations",
     (count(distinct org_id) filter (where day >= $2::date and requests > errors))::int as "organisations"
   from usage_days_by_key_model where day between $1::date and $3::date and requests > errors and model = any($4::text[]) group by model`,
)
