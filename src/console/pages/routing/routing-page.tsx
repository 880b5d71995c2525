import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import type { Column } from '../../ui/data/table.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Combobox } from '../../ui/forms/combobox.tsx'
import { SearchBox } from '../../ui/forms/list-filters.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { stepText } from '../steps/draft-steps.ts'
import { findChainModels } from '../steps/use-models.ts'
import { PreviewTab } from './preview/preview-tab.tsx'
import './routing.css'
import { type Chain, type RoutingSearch, routingTabs } from './search.ts'
import { text } from './text.ts'
import { useChains } from './use-chains.ts'

const route = getRouteApi('/routing')

/** The chains of the organisation, and the preview of a call. */
export function RoutingPage() {
  const search = route.useSearch()
  const { tab = 'chains', model, new: isNew } = search
  const navigate = route.useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const show = useCallback((next: RoutingSearch) => void navigate({ search: next, replace: true, resetScroll: false }), [navigate])
  const create = useCallback(() => void navigate({ search: { new: true }, resetScroll: false }), [navigate])
  usePageCommands(
    useMemo(
      () => (isAdmin ? [{ id: 'new-chain', label: text.create, group: text.title, icon: 'plus' as const, keys: 'n', run: create }] : []),
      [isAdmin, create],
    ),
  )
  const createButton = isAdmin && (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={isAdmin ? text.intro : `${text.intro} ${text.introAsk(owners)}`} actions={createButton}>
      <Tabs
        label={text.title}
        value={tab}
        onChange={next => show(next === 'preview' ? { tab: 'preview' } : {})}
        tabs={routingTabs.map(id => ({ id, label: text.tabs[id] }))}
      >
        <div className="routing-tab">
          {tab === 'chains' ? (
            <ChainsTab search={search} onShow={show} createButton={createButton} />
          ) : (
            <PreviewTab model={model} onModel={next => show({ tab: 'preview', ...(next === undefined ? {} : { model: next }) })} />
          )}
          <RulesPanel />
        </div>
      </Tabs>
      {isNew && isAdmin && <ChooseModel onClose={() => show({})} />}
    </Page>
  )
}

interface ChainsTabProps {
  readonly search: RoutingSearch
  readonly onShow: (search: RoutingSearch) => void
  readonly createButton: ReactNode
}

function ChainsTab({ search: { q }, onShow, createButton }: ChainsTabProps) {
  const chains = useChains(q === undefined ? {} : { q })
  const toChain = useNavigate()
  const find = useCallback((typed: string) => onShow(typed === '' ? {} : { q: typed }), [onShow])
  return (
    <>
      {(q !== undefined || (chains.data?.length ?? 0) > 0) && (
        <search className="list-filters">
          <SearchBox label={text.search} hint={text.searchHint} value={q ?? ''} onChange={find} />
        </search>
      )}
      <Panel isFlush>
        <Loaded query={chains} skeleton={<Skeleton lines={4} height={28} />}>
          {rows =>
            rows.length > 0 ? (
              <VirtualTable
                label={text.tabs.chains}
                columns={columns}
                rows={rows}
                rowKey={({ model }) => model}
                onOpen={({ model }) => void toChain({ to: '/routing/chain', search: { model } })}
                onMore={chains.hasNextPage ? () => void chains.fetchNextPage() : null}
                isLoadingMore={chains.isFetchingNextPage}
              />
            ) : q !== undefined ? (
              <Empty icon="search" title={text.noneTitle} action={<Button onClick={() => onShow({})}>{text.clear}</Button>}>
                {text.none}
              </Empty>
            ) : (
              <Empty icon="route" title={text.emptyTitle} action={createButton}>
                {text.empty}
              </Empty>
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

const columns: readonly Column<Chain>[] = [
  { key: 'model', head: text.columns.model, isName: true, cell: ({ model }) => <code>{model}</code> },
  { key: 'steps', head: text.columns.steps, cell: ({ steps }) => <span className="chain-line">{steps.map(stepText).join(' → ')}</span> },
  { key: 'count', head: text.columns.count, align: 'end', isOnCards: false, cell: ({ steps }) => <span className="tabular">{steps.length}</span> },
]

/** What decides where a call goes, so that a chain is understood beside the other rules. */
function RulesPanel() {
  return (
    <Panel title={text.rulesTitle}>
      <ol className="routing-rules">
        {text.rules.map(([rule, means]) => (
          <li key={rule}>
            <strong>{rule}</strong>
            <span className="quiet"> {means}</span>
          </li>
        ))}
      </ol>
      <p className="quiet">{text.rulesBound}</p>
    </Panel>
  )
}

function ChooseModel({ onClose }: { readonly onClose: () => void }) {
  const toChain = useNavigate()
  const [model, setModel] = useState<string>()
  const isReady = model !== undefined
  return (
    <Dialog
      title={text.chooseTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => isReady && void toChain({ to: '/routing/chain', search: { model } })}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={!isReady}>
            {text.chooseAct}
          </Button>
        </>
      }
    >
      <Combobox
        label={text.chooseLabel}
        hint={text.chooseHint}
        placeholder={text.choosePlaceholder}
        name="chain-models"
        value={model === undefined ? [] : [{ value: model, label: model }]}
        onChange={([chosen]) => setModel(chosen?.value)}
        search={findChainModels}
      />
    </Dialog>
  )
}
