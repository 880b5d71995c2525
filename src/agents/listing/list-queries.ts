import { type Statement, statement } from '../../platform/db/db.ts'
import { type AgentRow, agentColumns } from '../queries.ts'
import type { IndexedSort } from './list-cursor.ts'

/** How a list chooses its agents: all of the organisation, those of one owner, or those below one parent. */
export type Base = 'all' | 'owner' | 'parent'

export interface ListedRow extends AgentRow {
  /** The name as the database compares it. */
  readonly sortName: string
  /** False for the last agent that was read when the search for a text ended there. */
  readonly isMatch: boolean
  /** Number of agents of the page without the bound on bytes. */
  readonly found: number
  /** The position of the agent among the agents that were read, from 1. */
  readonly place: number
}

/** The conditions of a list, in the order of the parameters of its statement. */
export type Conditions = [
  /** True: only agents without a parent. */
  isTop: boolean,
  /** True: only paused agents. False: only agents that are not paused. */
  isPaused: boolean | null,
  /** A part of the name, or an id. */
  text: string | null,
  ownerUser: number | null,
  parentId: number | null,
]
type ListParams = [
  orgId: number,
  ...Conditions,
  /** The least and the greatest value of the group: the agents that are active, those that are revoked, or both. */
  groups: readonly boolean[],
  /** The group, the value and the id after which the page begins, as texts. */
  position: readonly string[],
  /** Maximum number of agents that are read. */
  scanMax: number,
  limit: number,
  rulesBytesMax: number,
]

interface Order {
  /** The expression that puts active agents first. It is the first column of the index after the organisation. */
  readonly group: string
  readonly keys: string
  readonly after: string
}

const position = '($8::text[])'
const lastCall = `coalesce(last_call_at, '-infinity'::timestamptz)`

/** Each order is a walk on the index of the same columns. A comparison of rows begins the walk at a position. */
const orders: Readonly<Record<IndexedSort, Order>> = {
  created: {
    group: `(status = 'active')`,
    keys: `(status = 'active') desc, id desc`,
    after: `((status = 'active'), id) < (${position}[1]::boolean, ${position}[3]::int) and ${position}[2] is not null`,
  },
  name: {
    group: `(status = 'revoked')`,
    keys: `(status = 'revoked'), (lower(name) collate "C"), id`,
    after: `((status = 'revoked'), (lower(name) collate "C"), id) > (${position}[1]::boolean, ${position}[2], ${position}[3]::int)`,
  },
  last_call: {
    group: `(status = 'active')`,
    keys: `(status = 'active') desc, ${lastCall} desc, id desc`,
    after: `((status = 'active'), ${lastCall}, id) < (${position}[1]::boolean, ${position}[2]::timestamptz, ${position}[3]::int)`,
  },
}

const baseConditions: Readonly<Record<Base, string>> = {
  all: 'true',
  owner: 'coalesce(owner_user, created_by_user) = $5::int',
  parent: 'parent_id = $6::int',
}
const conditions = `(not $2::boolean or parent_id is null) and ($3::boolean is null or (pause_seq % 2 = 1) = $3::boolean)
         and ($5::int is null or coalesce(owner_user, created_by_user) = $5::int) and ($6::int is null or parent_id = $6::int)`
const hasText = `($4::text is null or strpos(lower(name), lower($4::text)) > 0 or id::text = $4::text)`
const rulesBytes = `coalesce(octet_length(array_to_string(allowed_models, ',')), 0) + coalesce(octet_length(array_to_string(allowed_providers, ',')), 0)
  + coalesce(octet_length(array_to_string(allowed_tools, ',')), 0)`

/**
 * Returns agents after a position. The result ends before the row with which the rules of all rows have more than `rulesBytesMax` bytes, but has at
 * least one row. When the statement has read `scanMax` agents, the last of them is in the result, also when it does not match.
 */
const listOf = (sort: IndexedSort, base: Base): Statement<ListParams, ListedRow> => {
  const { group, keys, after } = orders[sort]
  return statement<ListParams, ListedRow>(
    `agents.list_${base}_by_${sort}`,
    `with walked as (
       select *, row_number() over (order by ${keys}) as place from agents
       where org_id = $1::int and ${group} between ($7::boolean[])[1] and ($7::boolean[])[2] and ${after} and ${baseConditions[base]} and ${conditions}
       order by ${keys} limit $9::int
     ), page as (
       select * from (select *, ${hasText} as is_match from walked) read where is_match or place = $9::int order by ${keys} limit $10::int
     ), measured as (
       select page.*, count(*) over () as found, row_number() over (order by place) as nth, sum(${rulesBytes}) over (order by place) as rules_bytes from page
     )
     select ${agentColumns}, lower(name) as "sortName", is_match as "isMatch", found::int as "found", place::int as "place"
     from measured where nth = 1 or rules_bytes <= $11::int order by place`,
  )
}

const listsOf = (sort: IndexedSort): Readonly<Record<Base, Statement<ListParams, ListedRow>>> => ({
  all: listOf(sort, 'all'),
  owner: listOf(sort, 'owner'),
  parent: listOf(sort, 'parent'),
})
/** The statements of the lists by order and base. */
export const lists: Readonly<Record<IndexedSort, Readonly<Record<Base, Statement<ListParams, ListedRow>>>>> = {
  created: listsOf('created'),
  name: listsOf('name'),
  last_call: listsOf('last_call'),
}

type CountParams = [orgId: number, ...Conditions, statuses: readonly string[], readMax: number]

const countOf = (base: Base): Statement<CountParams, { total: number }> =>
  statement<CountParams, { total: number }>(
    `agents.count_${base}`,
    `select count(*)::int as total from (
       select id, name, parent_id, pause_seq, owner_user, created_by_user from agents
       where org_id = $1::int and status = any($7::text[]) and ${baseConditions[base]} limit $8::int) read
     where ${conditions} and ${hasText}`,
  )
/** Count the agents of a list, among `readMax` at most. */
export const counts: Readonly<Record<Base, Statement<CountParams, { total: number }>>> = {
  all: countOf('all'),
  owner: countOf('owner'),
  parent: countOf('parent'),
}

/** Returns the ids of those of these agents that a list shows. */
export const findListed = statement<[orgId: number, ...Conditions, statuses: readonly string[], agentIds: readonly number[]], { id: number }>(
  'agents.find_listed',
  `select id from agents
   where org_id = $1::int and id = any($8::int[]) and status = any($7::text[]) and ${conditions} and ${hasText}`,
)

/** Returns the numbers of active children of these agents. Agents without children are left out. */
export const childCounts = statement<[orgId: number, agentIds: readonly number[]], { id: number; count: number }>(
  'agents.child_counts',
  `select parent_id as id, count(*)::int as "count" from agents
   where org_id = $1::int and parent_id = any($2::int[]) and status = 'active' group by parent_id`,
)

/** Returns the active children of an agent, newest first. */
export const activeChildren = statement<[orgId: number, parentId: number, limit: number], Pick<AgentRow, 'id' | 'name' | 'status' | 'pauseSeq'>>(
  'agents.active_children',
  `select id, name, status, pause_seq as "pauseSeq" from agents where org_id = $1::int and parent_id = $2::int and status = 'active' order by id desc limit $3::int`,
)
