/** Pages of the saved chains of an organisation. */
import { jsonBytes, pageMaxBytes } from '../../platform/db/bounded-page.ts'
import { type Db, type Statement, statement } from '../../platform/db/db.ts'
import { noPlace } from '../../platform/db/list-cursor.ts'
import { pageOfWalk, type Walked, walkedColumns, walkedPage, walkOf } from '../../platform/db/walked-page.ts'
import type { ChainRow } from './queries.ts'

/** The orders of a list of chains. */
export const chainSorts = ['model', 'updated'] as const
export type ChainSort = (typeof chainSorts)[number]

/** The chains that a request asks for. A field that is left out chooses all. */
export interface ChainFilter {
  /** A part of the model id, in upper or lower case. */
  readonly text?: string | undefined
  /** The person who saved the chain last. */
  readonly ownerUser?: number | undefined
  readonly sort?: ChainSort | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** Maximum number of chains of one page. */
export const chainsPageMax = 1_000

interface ListedChain extends ChainRow, Walked {
  readonly updatedAt: Date
}
interface Position {
  readonly updatedAt: string
  readonly modelId: string
}

type ListParams = [
  orgId: number,
  text: string | null,
  ownerUser: number | null,
  /** The time and the model id after which the page begins. */
  position: readonly string[],
  scanMax: number,
  limit: number,
  maxBytes: number,
]

const position = '($4::text[])'
const orders = {
  model: { order: 'id', after: `t.model_id > ${position}[2]` },
  updated: { order: 'updated_at desc, id desc', after: `(t.updated_at, t.model_id) < (${position}[1]::timestamptz, ${position}[2])` },
} as const
/** The position before the first chain of each order. A chain saved at the end of time does not exist, so its model id does not count. */
const starts: Readonly<Record<ChainSort, Position>> = { model: { updatedAt: '', modelId: '' }, updated: { updatedAt: 'infinity', modelId: '' } }

const listOf = (sort: ChainSort): Statement<ListParams, ListedChain> =>
  statement<ListParams, ListedChain>(
    `routing.list_chains_by_${sort}`,
    `${walkedPage({
      table: 'chains',
      id: 'model_id',
      where: orders[sort].after,
      keys: 't.model_id as id, t.updated_at',
      order: orders[sort].order,
      filter: `($2::text is null or strpos(lower(t.model_id), lower($2::text)) > 0) and ($3::int is null or coalesce(t.updated_by = $3::int, false))`,
      bytes: jsonBytes('t.model_id', 't.steps'),
      scanMax: '$5::int',
      limit: '$6::int',
      maxBytes: '$7::int',
    })}
   select c.model_id as "modelId", c.steps, c.updated_at as "updatedAt", ${walkedColumns}
   from shown s join chains c on c.org_id = $1::int and c.model_id = s.id order by s.place`,
  )
const lists: Readonly<Record<ChainSort, Statement<ListParams, ListedChain>>> = { model: listOf('model'), updated: listOf('updated') }

/**
 * Returns a page of the chains that a filter chooses, and the cursor of the next page. A page ends before its chains have more than `pageMaxBytes`.
 * Throws `bad_request` for an invalid cursor.
 */
export async function pageOfChains(
  db: Db,
  orgId: number,
  { text, ownerUser, sort = 'model', limit, cursor }: ChainFilter,
): Promise<{ chains: readonly ChainRow[]; nextCursor: string | null }> {
  const after = cursor === undefined ? starts[sort] : positionIn(sort, cursor)
  const scanMax = walkOf(limit, text !== undefined || ownerUser !== undefined)
  const rows = await db.many(lists[sort], orgId, text ?? null, ownerUser ?? null, [after.updatedAt, after.modelId], scanMax, limit + 1, pageMaxBytes)
  const { rows: chains, end } = pageOfWalk(rows, limit, scanMax)
  return { chains, nextCursor: end === null ? null : cursorOf(sort, end) }
}

const cursorOf = (sort: ChainSort, { modelId, updatedAt }: ListedChain): string =>
  `${sort}.${sort === 'updated' ? updatedAt.getTime() : 0}.${Buffer.from(modelId).toString('base64url')}`

function positionIn(sort: ChainSort, cursor: string): Position {
  const [, order, ms = '', encoded = ''] = /^(model|updated)\.(\d{1,14})\.([A-Za-z0-9_-]{1,700})$/.exec(cursor) ?? []
  const modelId = Buffer.from(encoded, 'base64url').toString()
  if (order !== sort || !/^[^\p{Cc}]{1,512}$/u.test(modelId)) throw noPlace()
  return { updatedAt: new Date(Number(ms)).toISOString(), modelId }
}
