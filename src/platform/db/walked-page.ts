/** Pages of lists that are searched and filtered. The database walks on the index of the order and stops at a number of rows. Decision 0690 says why. */

/** Maximum number of rows that one page of a search or of a filter reads. The page ends there, also when it is not full. */
export const walkedMax = 25_000

/** What a statement of `walkedPage` says about each row of a page. */
export interface Walked {
  /** False for the last row that was read when the walk ended at `walkedMax`. */
  readonly isMatch: boolean
  /** Number of rows of the page without the bound on bytes. */
  readonly found: number
  /** The place of the row among the rows that were read, from 1. */
  readonly place: number
}

export interface WalkedPage {
  readonly table: string
  /** The column that identifies a row of the organisation. */
  readonly id?: 'id' | 'model_id'
  /** The condition on `t` that chooses the rows of one organisation. The default compares `org_id` with the first parameter. */
  readonly owner?: string
  /** Conditions on `t`, the table, which the index of the order serves. The organisation is the first parameter. */
  readonly where: string
  /** The columns of `order`, with `id` first. */
  readonly keys: string
  readonly order: string
  /** The condition on `t` that a row of the list fulfils. */
  readonly filter: string
  /** SQL of the number of bytes of the texts of `t` as JSON. */
  readonly bytes: string
  /** The parameter for the number of rows that are read: `walkOf`. */
  readonly scanMax: string
  /** The parameter for one row more than the page may have. */
  readonly limit: string
  /** The parameter for `pageMaxBytes`. */
  readonly maxBytes: string
}

/** The columns of `Walked`. The caller selects them from `shown`, with the alias `s`, and sorts by `s.place`. */
export const walkedColumns = 's.found, s.is_match as "isMatch", s.place'

/** Returns the SQL of the CTE `shown`: the rows of a page by `id`, with their place in the walk. The caller joins its table. */
export function walkedPage({
  table,
  id = 'id',
  owner = 't.org_id = $1::int',
  where,
  keys,
  order,
  filter,
  bytes,
  scanMax,
  limit,
  maxBytes,
}: WalkedPage): string {
  return `with walked as (
     select read.*, row_number() over (order by ${order}) as place
     from (select ${keys}, (${filter}) as is_match from ${table} t where ${owner} and ${where}) read
     order by ${order} limit ${scanMax}),
   candidates as (select * from walked where is_match or place = ${scanMax} order by ${order} limit ${limit}),
   measured as (
     select c.id, c.is_match, c.place, row_number() over w as nth, count(*) over () as found, sum(${bytes}) over w as page_bytes
     from candidates c join ${table} t on ${owner} and t.${id} = c.id window w as (order by c.place rows unbounded preceding)),
   shown as (select id, is_match, place::int as place, found::int as found from measured where nth = 1 or page_bytes <= ${maxBytes})`
}

/** Returns the number of rows to read for a page. Without a filter each row is one of the page. */
export const walkOf = (limit: number, isFiltered: boolean): number => (isFiltered ? walkedMax : limit + 1)

/** Returns the rows of a page, and the row after which the next page begins. Null when the list has ended. */
export function pageOfWalk<R extends Walked>(rows: readonly R[], limit: number, scanMax: number): { readonly rows: readonly R[]; readonly end: R | null } {
  const matching = rows.filter(row => row.isMatch)
  const shown = matching.slice(0, limit)
  const last = rows.at(-1)
  if (last === undefined) return { rows: shown, end: null }
  if (matching.length > limit) return { rows: shown, end: shown.at(-1) ?? null }
  return { rows: shown, end: last.found > rows.length || last.place === scanMax ? last : null }
}
