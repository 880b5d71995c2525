import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Status, Tag } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { type AgentAct, AgentActs } from './agent-acts.tsx'
import { AgentFilters } from './agent-filters.tsx'
import './agents.css'
import { CreateAgent } from './create-agent.tsx'
import { EndAgent } from './end-agent.tsx'
import { ManyAgents } from './many/many-agents.tsx'
import { useSelection } from './many/use-selection.ts'
import { statuses, text } from './text.ts'
import { type Agent, mayAct, useAgents, usePause } from './use-agents.ts'

const route = getRouteApi('/agents')
const none: readonly Agent[] = []

/** The agents of the organisation. The gateway searches, filters and sorts them. */
export function AgentsPage() {
  const me = useMe()
  const { new: isNew, ...filters } = route.useSearch()
  const navigate = route.useNavigate()
  const toAgent = useNavigate()
  const agents = useAgents(filters)
  const pause = usePause()
  const [ending, setEnding] = useState<Agent | null>(null)
  const setNew = useCallback(
    (isOpen: boolean) => void navigate({ search: ({ new: _, ...rest }) => (isOpen ? { ...rest, new: true } : rest), resetScroll: false }),
    [navigate],
  )
  const change = useCallback(
    (changes: object) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const clear = useCallback(() => void navigate({ search: {}, replace: true, resetScroll: false }), [navigate])
  usePageCommands(
    useMemo(() => [{ id: 'new-agent', label: text.create, group: 'Agents', icon: 'plus' as const, keys: 'n', run: () => setNew(true) }], [setNew]),
  )
  const open = ({ id }: Pick<Agent, 'id'>): void => void toAgent({ to: '/agents/$id', params: { id: String(id) } })
  const act = (agent: Agent, name: AgentAct): void => (name === 'end' ? setEnding(agent) : pause.mutate({ id: agent.id, pause: name === 'pause' }))
  const columns = useAgentColumns(act)
  const { selected, marks, clear: clearSelection } = useSelection(agents.data?.agents ?? none)
  const isFiltered = Object.keys(filters).some(name => name !== 'sort')
  const isUnused = !isFiltered && agents.data?.agents.length === 0 && !agents.hasNextPage
  const create = (
    <Button look="primary" icon="plus" onClick={() => setNew(true)}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={hasRole(me, 'admin') ? text.intro : text.introMember} actions={create}>
      {!isUnused && <AgentFilters value={filters} onChange={change} agents={agents.data?.agents ?? []} total={agents.data?.total ?? null} />}
      <Panel isFlush>
        <Loaded query={agents} skeleton={<Skeleton lines={6} height={28} />}>
          {({ agents: rows }) =>
            rows.length === 0 && !agents.hasNextPage ? (
              isFiltered ? (
                <Empty icon="search" title={text.noneTitle} action={<Button onClick={clear}>{text.clear}</Button>}>
                  {text.none}
                </Empty>
              ) : (
                <Empty icon="agent" title={text.emptyTitle} action={create} command={text.emptyCommand}>
                  {text.empty}
                </Empty>
              )
            ) : (
              <VirtualTable
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={open}
                marks={rows.some(marks.mayMark) ? marks : undefined}
                onMore={agents.hasNextPage ? () => void agents.fetchNextPage() : null}
                isLoadingMore={agents.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
      <ManyAgents selected={selected} onClear={clearSelection} />
      {isNew && <CreateAgent onClose={() => setNew(false)} onMade={open} />}
      {ending && <EndAgent agent={ending} onClose={() => setEnding(null)} />}
    </Page>
  )
}

function useAgentColumns(act: (agent: Agent, name: AgentAct) => void): Column<Agent>[] {
  const me = useMe()
  return [
    { key: 'name', head: 'Name', isName: true, cell: agent => <Name agent={agent} /> },
    {
      key: 'status',
      head: 'Status',
      cell: ({ status }) => (
        <Status tone={statuses[status].tone} icon={statuses[status].icon} title={statuses[status].means}>
          {statuses[status].name}
        </Status>
      ),
    },
    {
      key: 'owner',
      head: 'Owner',
      isOnCards: false,
      cell: ({ owner_uid: uid, owner_name: name }) => {
        if (uid === null) return <span className="quiet">Nobody</span>
        return (
          <Link from="/agents" to="/agents" search={before => ({ ...before, owner: String(uid) })} className="cell-link">
            {uid === me.user.id ? 'You' : <MiddleCut text={name ?? `Member ${uid}`} max={22} />}
          </Link>
        )
      },
    },
    {
      key: 'budget',
      head: 'This month',
      width: '14.5rem',
      cell: agent => <BudgetBar capInr={agent.monthly_budget_inr} spentInr={agent.spend_month_inr} heldInr={agent.held_inr} inDoubtInr={agent.in_doubt_inr} />,
    },
    { key: 'call', head: 'Last call', cell: ({ last_call_at: at }) => <Time at={at} /> },
    {
      key: 'children',
      head: 'Children',
      align: 'end',
      isOnCards: false,
      cell: ({ id, active_children: many }) =>
        many === 0 ? (
          <span className="quiet">–</span>
        ) : (
          <Link to="/agents" search={{ parent: String(id) }} className="cell-link" aria-label={`${count(many)}: show the children`}>
            {count(many)}
          </Link>
        ),
    },
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: agent => (mayAct(me, agent) ? <AgentActs agent={agent} onAct={name => act(agent, name)} /> : null),
    },
  ]
}

function Name({ agent: { id, name, parent_id: parent, playground } }: { readonly agent: Agent }) {
  return (
    <span className="cell-stack">
      <Link to="/agents/$id" params={{ id: String(id) }} className="cell-link">
        <MiddleCut text={name} max={34} />
      </Link>
      <span className="quiet agent-line">
        #{id}
        {parent !== null && <span>child of #{parent}</span>}
        {playground && <Tag>playground</Tag>}
      </span>
    </span>
  )
}
