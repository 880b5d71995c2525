import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { apiQuery } from '../../api/queries.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import { Status } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Combobox } from '../../ui/forms/combobox.tsx'
import { SearchBox } from '../../ui/forms/list-filters.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { OpenRequests } from './requests/request-list.tsx'
import './runs.css'
import { placeOf, type Run, type RunsSearch, runStates } from './search.ts'
import { stateWords, text } from './text.ts'
import { findAgents, useRuns } from './use-runs.ts'

const route = getRouteApi('/runs')

/** The runs of the organisation, those with the latest calls first, with the requests for more budget that wait for an answer. */
export function RunsPage() {
  const filters = route.useSearch()
  const navigate = useNavigate()
  const runs = useRuns(filters)
  const filter = (changes: { [K in keyof RunsSearch]?: RunsSearch[K] | undefined }): void => {
    const next = { ...filters, ...changes }
    const given = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined))
    void navigate({ to: '/runs', search: given as RunsSearch, replace: true, resetScroll: false })
  }
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Page title={text.title} intro={text.intro}>
      <OpenRequests />
      <RunFilters value={filters} onChange={filter} />
      <Panel isFlush>
        <Loaded query={runs} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length > 0 ? (
              <VirtualTable
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={({ run_id: id, agent_id: agent, key_id: key }) => `${agent}/${key}/${id}`}
                onOpen={run => void navigate(placeOf(run))}
                onMore={runs.hasNextPage ? () => void runs.fetchNextPage() : null}
                isLoadingMore={runs.isFetchingNextPage}
              />
            ) : runs.hasNextPage ? (
              <Empty
                icon="search"
                title={text.noneTitle}
                action={
                  <Button isBusy={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
                    {text.further}
                  </Button>
                }
              >
                {text.none}
              </Empty>
            ) : isFiltered ? (
              <Empty
                icon="search"
                title={text.noneTitle}
                action={<Button onClick={() => filter({ q: undefined, state: undefined, agent: undefined })}>{text.clear}</Button>}
              >
                {text.none}
              </Empty>
            ) : (
              <Empty icon="route" title={text.emptyTitle} command={text.emptyCommand}>
                {text.empty}
              </Empty>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  )
}

interface RunFiltersProps {
  readonly value: RunsSearch
  readonly onChange: (changes: { [K in keyof RunsSearch]?: RunsSearch[K] | undefined }) => void
}

/** Search, state and agent. All of them are in the address, and the gateway applies them. */
function RunFilters({ value: { q, state, agent }, onChange }: RunFiltersProps) {
  const known = useQuery({ ...apiQuery('getAgentConsole', { path: { id: agent ?? 0 } }), enabled: agent !== undefined })
  return (
    <search className="list-filters run-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={q ?? ''} onChange={typed => onChange({ q: typed === '' ? undefined : typed })} />
      <Segmented
        label={text.state}
        value={state ?? 'all'}
        onChange={chosen => onChange({ state: chosen === 'all' ? undefined : chosen })}
        options={[{ value: 'all' as const, label: text.anyState }, ...runStates.map(one => ({ value: one, label: stateWords[one].name }))]}
      />
      <div className="run-agent">
        <Combobox
          label={text.agent}
          placeholder={text.agentPlaceholder}
          name="agents of runs"
          value={agent === undefined ? [] : [{ value: String(agent), label: known.data?.name ?? `id ${agent}` }]}
          onChange={([chosen]) => onChange({ agent: chosen === undefined ? undefined : Number(chosen.value) })}
          search={findAgents}
        />
      </div>
    </search>
  )
}

const ownerName = ({ agent_name: agent, key_name: key, agent_id: agentId, key_id: keyId }: Run): string =>
  agent ?? key ?? (agentId !== null ? `agent ${agentId}` : keyId !== null ? `key ${keyId}` : text.noOwner)

const columns: readonly Column<Run>[] = [
  {
    key: 'run',
    head: text.run,
    isName: true,
    cell: run => (
      <span className="cell-stack">
        <MiddleCut text={run.run_id} max={34} />
        <span className="quiet">{ownerName(run)}</span>
      </span>
    ),
  },
  {
    key: 'state',
    head: text.state,
    cell: ({ state }) => (
      <Status tone={stateWords[state].tone} icon={stateWords[state].icon} title={stateWords[state].means}>
        {stateWords[state].name}
      </Status>
    ),
  },
  {
    key: 'cost',
    head: text.cost,
    width: '14rem',
    cell: ({ max_cost_inr: cap, increase_inr: more = 0, value_inr: spent }) =>
      cap === null ? <Money inr={spent} isShort /> : <BudgetBar capInr={cap + more} spentInr={spent} />,
  },
  {
    key: 'calls',
    head: text.calls,
    align: 'end',
    cell: ({ calls, max_calls: cap, increase_calls: more = 0 }) => (
      <span className="tabular">
        {count(calls)}
        {cap !== null && <span className="quiet"> of {count(cap + more)}</span>}
      </span>
    ),
  },
  { key: 'last', head: text.last, cell: ({ last_at: at }) => <Time at={at} /> },
]
