import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { OnlyAdmins } from '../../app/only-admins.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { DateOnly } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { CreateRule } from './create/create-rule.tsx'
import { RulePeek } from './rule-peek.tsx'
import type { WorkloadsSearch } from './search.ts'
import { TokenTester } from './tester/token-tester.tsx'
import { text } from './text.ts'
import { type TrustRule, useAgentName, useTrust } from './use-trust.ts'
import './workloads.css'

const route = getRouteApi('/workloads')
const tabs = ['rules', 'test'] as const

/** The trust rules of the organisation, and a test of tokens. Owners and admins see them. */
export function WorkloadsPage() {
  return hasRole(useMe(), 'admin') ? <Workloads /> : <OnlyAdmins title={text.title} icon="link" what={text.onlyAdmins} />
}

const AgentName = ({ id }: { readonly id: number }) => <MiddleCut text={useAgentName(id)} max={24} />

const columns: readonly Column<TrustRule>[] = [
  { key: 'name', head: text.columns.name, isName: true, cell: ({ name }) => <MiddleCut text={name} max={36} /> },
  { key: 'issuer', head: text.columns.issuer, isOnCards: false, cell: ({ issuer }) => <MiddleCut text={issuer.replace('https://', '')} max={34} /> },
  {
    key: 'subject',
    head: text.columns.subject,
    cell: ({ subject }) => (
      <code>
        <MiddleCut text={subject} max={44} />
      </code>
    ),
  },
  { key: 'agent', head: text.columns.agent, cell: ({ agent_id: id }) => <AgentName id={id} /> },
  { key: 'created', head: text.columns.created, align: 'end', isOnCards: false, cell: ({ created_at: at }) => <DateOnly at={at} /> },
]

function Workloads() {
  const { tab = 'rules', rule: openRule, new: isNew } = route.useSearch()
  const navigate = route.useNavigate()
  const isOwner = hasRole(useMe(), 'owner')
  const rules = useTrust()
  const show = useCallback((search: WorkloadsSearch) => void navigate({ search, replace: true, resetScroll: false }), [navigate])
  const create = useCallback(() => void navigate({ search: { new: true }, resetScroll: false }), [navigate])
  usePageCommands(
    useMemo(
      () => (isOwner ? [{ id: 'new-rule', label: text.create, group: text.title, icon: 'plus' as const, keys: 'n', run: create }] : []),
      [isOwner, create],
    ),
  )
  const button = isOwner && (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={isOwner ? text.intro : `${text.intro} ${text.ownersOnly}`} actions={button}>
      <Tabs
        label={text.title}
        value={tab}
        onChange={next => show(next === 'test' ? { tab: 'test' } : {})}
        tabs={tabs.map(id => ({ id, label: text.tabs[id] }))}
      >
        <div className="workloads-tab">
          <Loaded query={rules} skeleton={<Skeleton lines={4} height={28} />}>
            {rows =>
              tab === 'test' ? (
                <TokenTester rules={rows} />
              ) : (
                <Panel isFlush>
                  {rows.length === 0 ? (
                    <Empty icon="link" title={text.emptyTitle} action={button}>
                      {text.empty}
                    </Empty>
                  ) : (
                    <VirtualTable
                      label={text.tabs.rules}
                      columns={columns}
                      rows={rows}
                      rowKey={({ id }) => id}
                      onOpen={({ id }) => show({ rule: id })}
                      isOpen={({ id }) => id === openRule}
                      onMore={rules.hasNextPage ? () => void rules.fetchNextPage() : null}
                      isLoadingMore={rules.isFetchingNextPage}
                    />
                  )}
                </Panel>
              )
            }
          </Loaded>
        </div>
      </Tabs>
      {openRule !== undefined && rules.data && <RulePeek key={openRule} rule={rules.data.find(({ id }) => id === openRule) ?? null} onClose={() => show({})} />}
      {isNew && isOwner && <CreateRule onClose={() => show({})} />}
    </Page>
  )
}
