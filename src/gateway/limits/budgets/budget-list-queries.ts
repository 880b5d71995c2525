import { type Statement, statement } from '../../../platform/db/db.ts'
import type { Scope } from '../engine/counters/counter-state.ts'
import type { BudgetStatus } from './budgets.ts'
import type { BudgetPeriod } from './periods/period.ts'

/** A budget that a walk has read. */
export interface WalkedBudget {
  readonly scope: Scope
  readonly scopeId: string
  readonly period: BudgetPeriod
  readonly capUinr: bigint
  /** False for the last row of a walk that ended at its maximum. */
  readonly isMatch: boolean
  /** The place of the row among the rows that were read, from 1. */
  readonly place: number
}

type ListParams = [
  orgId: number,
  /** The cap, the place of the scope among the scopes, the id and the place of the period after which the walk begins, as texts. */
  position: readonly string[],
  scope: Scope | null,
  state: BudgetStatus['state'] | null,
  /** The names of the running periods, in the order of the periods. */
  periods: readonly string[],
  readMax: number,
]

const scopePlace = `array_position('{org,team,workspace,member,key,agent}'::text[], b.scope)`
const digits = `lpad(b.scope_id, 10, '0')`
const periods = `'{ever,month,week,day}'::text[]`
const position = '($2::text[])'
const rest = `${position}[2]::int, lpad(${position}[3], 10, '0'), ${position}[4]::int`
const ordersOf = (periodPlace: string) =>
  ({
    scope: { order: `${scopePlace}, ${digits}, ${periodPlace}`, after: `(${scopePlace}, ${digits}, ${periodPlace}) > (${rest})` },
    cap: {
      order: `b.cap_uinr desc, ${scopePlace} desc, ${digits} desc, ${periodPlace} desc`,
      after: `(b.cap_uinr, ${scopePlace}, ${digits}, ${periodPlace}) < (${position}[1]::bigint, ${rest})`,
    },
  }) as const
/** The counter of the running period decides the state, as in `stateOf` of the budgets. */
const state = `(select case when c.spent >= walked.cap_uinr then 'blocked' when c.spent * 100 >= walked.cap_uinr * 80 then 'warned' else 'under' end
     from (select coalesce((select c.spent from counters c where c.org_id = $1::int and c.scope = walked.scope and c.scope_id = walked.scope_id
       and c.metric = case when walked.period = 'month' and ($5::text[])[2] !~ '@' then 'spend' else 'budget' end
       and c.period = ($5::text[])[array_position(${periods}, walked.period)]), 0)::numeric as spent) c)`

/** The next budgets of a table. `period` is the period of its rows. */
function nextOf(table: string, period: string, sort: 'scope' | 'cap'): string {
  const { order, after } = ordersOf(`array_position(${periods}, ${period})`)[sort]
  return `(select b.scope, b.scope_id, b.cap_uinr, ${period} as period from ${table} b
       where b.org_id = $1::int and b.scope_id ~ '^[0-9]{1,10}$' and ${position}[1] is not null and ${after}
       order by ${order} limit $6::int)`
}

const walkOf = (sort: 'scope' | 'cap'): Statement<ListParams, WalkedBudget> =>
  statement<ListParams, WalkedBudget>(
    `limits.walk_budgets_by_${sort}`,
    `with walked as (
       select b.*, row_number() over (order by ${ordersOf(`array_position(${periods}, b.period)`)[sort].order}) as place
       from (${nextOf('budgets', "'month'::text", sort)} union all ${nextOf('period_budgets', 'b.period', sort)}) b
       order by place limit $6::int
     ), filtered as (
       select *, ($3::text is null or scope = $3::text) and ($4::text is null or ${state} = $4::text) as is_match from walked
     )
     select scope as "scope", scope_id as "scopeId", period as "period", cap_uinr as "capUinr", is_match as "isMatch", place::int as "place"
     from filtered where is_match or place = $6::int order by place`,
  )

/** Read the next budgets of an organisation in each order, and say which of them a filter chooses. */
export const walks = { scope: walkOf('scope'), cap: walkOf('cap') } as const
