import { statement } from '../../../platform/db/db.ts'

export interface FeedRow {
  readonly name: string
  readonly source: string
  readonly content: unknown
  readonly fetchedAt: Date | null
  readonly triedAt: Date
  readonly askedAt: Date
}

/** Reads the stored data of these sources. */
export const findFeeds = statement<[sources: readonly string[]], FeedRow>(
  'catalog.find_price_feeds',
  `select name as "name", source as "source", content as "content", fetched_at as "fetchedAt", tried_at as "triedAt", asked_at as "askedAt"
   from price_feeds where source = any($1::text[])`,
)

/**
 * Updates the row of a source when the source is due. Only the process whose update succeeds fetches the source. A last try in the future counts as
 * due, because it comes from a clock that was set back.
 */
export const claimFeed = statement<[name: string, source: string, now: Date, dueBefore: Date]>(
  'catalog.claim_price_feed',
  `insert into price_feeds (name, source, tried_at, asked_at) values ($1::text, $2::text, $3::timestamptz, $3::timestamptz)
   on conflict (name, source) do update set tried_at = excluded.tried_at
   where price_feeds.tried_at <= $4::timestamptz or price_feeds.tried_at > $3::timestamptz + interval '1 hour'`,
)

export const keepFeed = statement<[name: string, source: string, content: string, now: Date]>(
  'catalog.keep_price_feed',
  'update price_feeds set content = $3::jsonb, fetched_at = $4::timestamptz where name = $1::text and source = $2::text',
)

/** Deletes sources that are no longer configured. */
export const deleteOldFeeds = statement<[before: Date]>(
  'catalog.delete_old_price_feeds',
  'delete from price_feeds where tried_at < $1::timestamptz and asked_at < $1::timestamptz',
)

export const noteAsked = statement<[sources: readonly string[], now: Date]>(
  'catalog.note_price_feeds_asked',
  'update price_feeds set asked_at = $2::timestamptz where source = any($1::text[])',
)
