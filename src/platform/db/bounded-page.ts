/** Pages of lists whose rows hold texts of callers. A page ends at a number of rows or of bytes, whichever comes first. Decision 0650 says why. */
import { fail } from '../errors.ts'
import { rowId } from '../values/row-id.ts'

/** Maximum number of bytes of the texts of one page. One row may have more, and is then a page of its own. */
export const pageMaxBytes = 512 * 1024

/** A row with the number of rows that the query found for its page, with one row more than the page may have. */
export interface Paged {
  readonly found: number
}

export interface BoundedPage {
  /** SQL of `from` and `where`. It selects the rows of the list behind the cursor. */
  readonly from: string
  /** The columns of `order`, with `id` first. */
  readonly keys: string
  readonly order: string
  /** SQL of the number of bytes of a row's texts as JSON (`jsonBytes`). It names columns of the table. */
  readonly bytes: string
  /** The parameter for the number of rows. */
  readonly limit: string
  /** The parameter for `pageMaxBytes`. */
  readonly maxBytes: string
}

/**
 * Returns the SQL of the CTE `shown`: the ids of a page as `id`, their order as `place`, and `found`. Only numbers are sorted and added up, so that the texts
 * are read once. The caller joins its table and asks for one row more than the page has (`rowsOfPage`).
 */
export function boundedPage({ from, keys, order, bytes, limit, maxBytes }: BoundedPage): string {
  return `with candidates as (select ${keys}, ${bytes} as row_bytes ${from} order by ${order} limit ${limit}),
   measured as (
     select id, row_number() over w as place, count(*) over () as found, sum(row_bytes) over w as page_bytes
     from candidates window w as (order by ${order} rows unbounded preceding)),
   shown as (select id, place, found::int as found from measured where place = 1 or page_bytes <= ${maxBytes})`
}

/** Returns the SQL of the number of bytes that columns of type text, text[] or jsonb have in JSON. */
export function jsonBytes(...columns: readonly string[]): string {
  return columns.map(column => `coalesce(octet_length(to_json(${column})::text), 0)`).join(' + ')
}

/** Returns the rows of the page and whether another page follows. `limit` is the maximum number of rows of the page. The query got one more. */
export function rowsOfPage<R extends Paged>(rows: readonly R[], limit: number): { readonly rows: readonly R[]; readonly hasMore: boolean } {
  const shown = rows.slice(0, limit)
  return { rows: shown, hasMore: (rows[0]?.found ?? 0) > shown.length }
}

/** Returns the id in the cursor of a page. Null means the first page. Throws `bad_request` for a text that is not a cursor. */
export function idOfCursor(cursor: string | null): number | null {
  const id = cursor === null ? null : rowId(cursor)
  if (cursor !== null && id === null) throw noCursor()
  return id
}

/** The error for a text that is not a cursor of a list. */
export const noCursor = () => fail('bad_request', { message: 'That cursor is not one of ours. Send next_cursor of the page before.' })
