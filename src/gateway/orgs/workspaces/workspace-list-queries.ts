import { type Statement, statement } from '../../../platform/db/db.ts'
import { type Walked, walkedColumns, walkedPage } from '../../../platform/db/walked-page.ts'
import { type WorkspaceRow, workspaceColumns } from './workspace-queries.ts'

/** A workspace of a page. */
export interface ListedWorkspaceRow extends WorkspaceRow, Walked {
  /** The name as the database compares it. */
  readonly sortName: string
}

type ListParams = [
  orgId: number,
  /** A part of the name, or an id. */
  text: string | null,
  /** The least and the greatest value of `archived`: the active workspaces, the archived ones, or both. */
  archived: readonly boolean[],
  /** Whether the workspace is archived, the name and the id after which the page begins, as texts. */
  position: readonly string[],
  scanMax: number,
  limit: number,
  maxBytes: number,
]

const archived = '(t.archived_at is not null)'
const sortName = '(lower(t.name) collate "C")'
const position = '($4::text[])'
const orders = {
  created: {
    keys: `t.id, ${archived} as archived`,
    order: 'archived, id',
    after: `(${archived}, t.id) > (${position}[1]::boolean, ${position}[3]::int)`,
  },
  name: {
    keys: `t.id, ${archived} as archived, ${sortName} as sort_name`,
    order: 'archived, sort_name, id',
    after: `(${archived}, ${sortName}, t.id) > (${position}[1]::boolean, ${position}[2], ${position}[3]::int)`,
  },
} as const

/** An id in JSON has at most 11 bytes with its comma. */
const listOf = (sort: keyof typeof orders): Statement<ListParams, ListedWorkspaceRow> =>
  statement<ListParams, ListedWorkspaceRow>(
    `orgs.list_workspaces_by_${sort}`,
    `${walkedPage({
      table: 'workspaces',
      where: `${archived} between ($3::boolean[])[1] and ($3::boolean[])[2] and ${orders[sort].after}`,
      keys: orders[sort].keys,
      order: orders[sort].order,
      filter: '$2::text is null or strpos(lower(t.name), lower($2::text)) > 0 or t.id::text = $2::text',
      bytes: '11 * (select count(*) from workspace_members m where m.workspace_id = t.id)',
      scanMax: '$5::int',
      limit: '$6::int',
      maxBytes: '$7::int',
    })}
   select ${workspaceColumns}, lower(w.name) as "sortName", ${walkedColumns} from shown s join workspaces w on w.org_id = $1::int and w.id = s.id order by s.place`,
  )

/** Return a page of workspaces in each order, the active ones first, with one workspace more than the page has. */
export const lists = { created: listOf('created'), name: listOf('name') } as const
