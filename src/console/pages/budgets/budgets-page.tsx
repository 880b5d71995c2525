import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import { Status } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { OpenRequests } from '../runs/requests/request-list.tsx'
import { BudgetFilters } from './budget-filters.tsx'
import { BudgetPeek } from './budget-peek.tsx'
import './budgets.css'
import { CreateBudget } from './create-budget.tsx'
import { resetDay } from './form/consequence.ts'
import type { Budget } from './search.ts'
import { stateWords, text } from './text.ts'
import { refOf, useBudgets } from './use-budgets.ts'

const route = getRouteApi('/budgets')

/** Every budget that binds, the one with the most need first. The gateway searches and filters them. One of them can be open beside the list. */
export function BudgetsPage() {
  const isAdmin = hasRole(useMe(), 'admin')
  return isAdmin ? <BudgetsOfOrg /> : <NotForMembers />
}

function NotForMembers() {
  const owners = useOwners()
  return (
    <Page title={text.title}>
      <Panel>
        <Empty icon="wallet" title={text.membersTitle} action={<LinkButton to="/keys">Keys</LinkButton>}>
          {text.members(owners)}
        </Empty>
      </Panel>
    </Page>
  )
}

function BudgetsOfOrg() {
  const { budget: openBudget, new: isNew, ...filters } = route.useSearch()
  const navigate = route.useNavigate()
  const now = useNow()
  const budgets = useBudgets(filters, true)
  const open = useCallback(
    (budget: string | null) =>
      void navigate({ search: ({ budget: _, new: __, ...rest }) => (budget === null ? rest : { ...rest, budget }), resetScroll: false }),
    [navigate],
  )
  const create = useCallback(() => void navigate({ search: ({ budget: _, ...rest }) => ({ ...rest, new: true }), resetScroll: false }), [navigate])
  const filter = useCallback(
    (changes: object) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const clear = useCallback(() => void navigate({ search: {}, replace: true, resetScroll: false }), [navigate])
  usePageCommands(useMemo(() => [{ id: 'set-budget', label: text.create, group: 'Budgets', icon: 'plus' as const, keys: 'n', run: create }], [create]))
  const isFiltered = Object.keys(filters).length > 0
  const isUnused = !isFiltered && budgets.data?.length === 0 && !budgets.hasNextPage
  const createButton = (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={text.intro(resetDay(now))} actions={createButton}>
      <OpenRequests areBudgets />
      {!isUnused && <BudgetFilters value={filters} onChange={filter} />}
      <Panel isFlush>
        <Loaded query={budgets} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length > 0 || budgets.hasNextPage ? (
              <VirtualTable
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={refOf}
                onOpen={row => open(refOf(row))}
                isOpen={row => refOf(row) === openBudget}
                onMore={budgets.hasNextPage ? () => void budgets.fetchNextPage() : null}
                isLoadingMore={budgets.isFetchingNextPage}
              />
            ) : isFiltered ? (
              <Empty icon="search" title={text.noneTitle} action={<Button onClick={clear}>{text.clear}</Button>}>
                {text.none}
              </Empty>
            ) : (
              <Empty icon="wallet" title={text.emptyTitle} action={createButton}>
                {text.empty}
              </Empty>
            )
          }
        </Loaded>
      </Panel>
      {openBudget !== undefined && budgets.data && (
        <BudgetPeek key={openBudget} budget={budgets.data.find(row => refOf(row) === openBudget) ?? null} onClose={() => open(null)} />
      )}
      {isNew && <CreateBudget onClose={() => open(null)} />}
    </Page>
  )
}

const columns: readonly Column<Budget>[] = [
  {
    key: 'name',
    head: text.name,
    isName: true,
    cell: ({ name, scope, period, strict }) => (
      <span className="cell-stack">
        <MiddleCut text={name} max={34} />
        <span className="quiet">{`${text.scopes[scope]}${period === 'month' ? '' : ` · ${text.periods[period]}`}${strict ? ' · strict' : ''}`}</span>
      </span>
    ),
  },
  {
    key: 'state',
    head: text.state,
    cell: ({ state }) => (
      <Status tone={stateWords[state].tone} title={stateWords[state].means}>
        {stateWords[state].name}
      </Status>
    ),
  },
  {
    key: 'used',
    head: text.used,
    width: '14rem',
    cell: ({ cap_inr: cap, increase_inr: more = 0, spent_inr: spent, held_inr: held, in_doubt_inr: inDoubt }) => (
      <BudgetBar capInr={cap === null ? null : cap + more} spentInr={spent} heldInr={held} inDoubtInr={inDoubt} />
    ),
  },
  { key: 'held', head: text.held, align: 'end', isOnCards: false, cell: ({ held_inr: inr }) => <Amount inr={inr} help={text.heldHelp} /> },
  { key: 'doubt', head: text.inDoubt, align: 'end', isOnCards: false, cell: ({ in_doubt_inr: inr }) => <Amount inr={inr} help={text.inDoubtHelp} /> },
  { key: 'left', head: text.left, align: 'end', cell: ({ remaining_inr: inr }) => (inr === null ? 'No limit' : <Money inr={inr} />) },
]

/** An amount that is mostly nothing. */
function Amount({ inr, help }: { readonly inr: number; readonly help: string }) {
  return <span title={help}>{inr === 0 ? <span className="quiet">–</span> : <Money inr={inr} />}</span>
}
