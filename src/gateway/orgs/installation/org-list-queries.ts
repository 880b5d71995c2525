/** Statements about all organisations of the installation, for the operator. They return nothing that an organisation keeps. */
import { type Statement, statement } from '../../../platform/db/db.ts'
import { type Walked, walkedColumns, walkedPage } from '../../../platform/db/walked-page.ts'

/** An organisation of a page. */
export interface ListedOrgRow extends Walked {
  readonly id: number
  readonly name: string
  readonly kind: 'personal' | 'team'
  readonly createdAt: Date
  readonly memberCount: number
  /** The name as the database compares it. */
  readonly sortName: string
}

type ListParams = [
  /** A part of the name, or an id. */
  text: string | null,
  /** The name and the id after which the page begins, as texts. */
  position: readonly string[],
  scanMax: number,
  limit: number,
  maxBytes: number,
]

const sortName = '(lower(t.name) collate "C")'
const position = '($2::text[])'
const orders = {
  newest: { keys: 't.id', order: 'id desc', after: `t.id < ${position}[2]::int` },
  oldest: { keys: 't.id', order: 'id', after: `t.id > ${position}[2]::int` },
  name: { keys: `t.id, ${sortName} as sort_name`, order: 'sort_name, id', after: `(${sortName}, t.id) > (${position}[1], ${position}[2]::int)` },
} as const

const listOf = (sort: keyof typeof orders): Statement<ListParams, ListedOrgRow> =>
  statement<ListParams, ListedOrgRow>(
    `orgs.list_all_by_${sort}`,
    `${walkedPage({
      table: 'orgs',
      owner: 'true',
      where: orders[sort].after,
      keys: orders[sort].keys,
      order: orders[sort].order,
      filter: '$1::text is null or strpos(lower(t.name), lower($1::text)) > 0 or t.id::text = $1::text',
      bytes: 'octet_length(to_json(t.name)::text)',
      scanMax: '$3::int',
      limit: '$4::int',
      maxBytes: '$5::int',
    })}
   select o.id, o.name, o.kind, o.created_at as "createdAt", lower(o.name) as "sortName", ${walkedColumns},
     (select count(*) from org_members m where m.org_id = o.id and m.status = 'active')::int as "memberCount"
   from shown s join orgs o on o.id = s.id order by s.place`,
  )

/** Return a page of all organisations in each order, with one organisation more than the page has. */
export const lists = { newest: listOf('newest'), oldest: listOf('oldest'), name: listOf('name') } as const
