/** SQL that reads facts of a usage event as the flush computes them. */

/** A call that the provider served. Only these calls have a latency in the sums. The hours of a batch, and replies of the cache, say nothing about the speed of a model. */
export const servedSql = "outcome = 'ok' and status < 400 and kind <> 'batch' and provider <> 'br:cache'"
/** The bucket of the latency, as `latencyBucket` returns it. */
export const bucketSql = 'least(200, floor(8 * ln(greatest(latency_ms, 1)::float8) / ln(2::float8)))::smallint'
/** The hour of the IST day, as `istHour` returns it. */
export const hourSql = "extract(hour from at at time zone 'Asia/Kolkata')::smallint"
/** Outcomes that do not count as errors. A client that gives up is not a failure of the call. */
export const failedSql = "outcome not in ('ok', 'client_gone')"
