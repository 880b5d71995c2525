import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { Status, Tag } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { SearchBox } from '../../ui/forms/list-filters.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { ErrorPanel } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { AddKey } from './key-form/add-key.tsx'
import { ProviderPeek } from './provider-peek.tsx'
import './providers.css'
import { chosenRows, type ProviderRow, type ProvidersSearch, providerStates } from './search.ts'
import { stateOf, text } from './text.ts'
import { useProviders } from './use-providers.ts'

const route = getRouteApi('/providers')

/** The providers of the gateway, with the keys that the organisation has there. */
export function ProvidersPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const isOwner = hasRole(useMe(), 'owner')
  const owners = useOwners('owner')
  const { all, own, isOff, rows } = useProviders()
  const show = useCallback(
    (changes: { [K in keyof ProvidersSearch]?: ProvidersSearch[K] | undefined }, replace = false) =>
      void navigate({ search: before => withChanges(before, changes), replace, resetScroll: false }),
    [navigate],
  )
  const add = useCallback(() => show({ add: '', provider: undefined }), [show])
  const mayAdd = isOwner && own.data !== undefined && own.data.providers.length > 0
  usePageCommands(
    useMemo(() => (mayAdd ? [{ id: 'add-provider-key', label: text.add, group: text.title, icon: 'plus' as const, keys: 'n', run: add }] : []), [mayAdd, add]),
  )
  const failed = rows === undefined ? (all.error ?? own.error) : null
  const opened = search.provider === undefined ? undefined : (rows?.find(({ id }) => id === search.provider) ?? null)
  return (
    <Page
      title={text.title}
      intro={isOff ? `${text.intro} ${text.off}` : isOwner ? text.intro : `${text.intro} ${text.introAsk(owners)}`}
      actions={
        mayAdd && (
          <Button look="primary" icon="plus" onClick={add}>
            {text.add}
          </Button>
        )
      }
    >
      <search className="list-filters provider-filters">
        <SearchBox label={text.search} hint={text.searchHint} value={search.q ?? ''} onChange={typed => show({ q: typed === '' ? undefined : typed }, true)} />
        <Segmented
          label={text.state}
          value={search.state ?? 'all'}
          onChange={state => show({ state: state === 'all' ? undefined : state }, true)}
          options={(['all', ...providerStates] as const).map(value => ({ value, label: text.states[value] }))}
        />
      </search>
      <Panel isFlush>
        {rows !== undefined ? (
          <Rows
            rows={chosenRows(rows, search)}
            opened={search.provider}
            onOpen={provider => show({ provider, add: undefined })}
            onClear={() => show({ q: undefined, state: undefined }, true)}
          />
        ) : failed && !isOff ? (
          <ErrorPanel error={failed} onRetry={() => void Promise.all([all.refetch(), own.refetch()])} />
        ) : (
          <Skeleton lines={6} height={28} />
        )}
      </Panel>
      {opened !== undefined && rows !== undefined && (
        <ProviderPeek
          key={search.provider}
          row={opened}
          isOwner={isOwner}
          owners={owners}
          onReplace={id => show({ add: id })}
          onClose={() => show({ provider: undefined })}
        />
      )}
      {search.add !== undefined && mayAdd && rows !== undefined && (
        <AddKey
          key={search.add}
          rows={rows}
          first={search.add}
          onClose={() => show({ add: undefined })}
          onSaved={provider => show({ add: undefined, provider })}
        />
      )}
    </Page>
  )
}

function withChanges(before: ProvidersSearch, changes: { [K in keyof ProvidersSearch]?: ProvidersSearch[K] | undefined }): ProvidersSearch {
  return Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined))
}

interface RowsProps {
  readonly rows: readonly ProviderRow[]
  readonly opened: string | undefined
  readonly onOpen: (id: string) => void
  readonly onClear: () => void
}

function Rows({ rows, opened, onOpen, onClear }: RowsProps) {
  if (rows.length === 0)
    return (
      <Empty icon="search" title={text.noneTitle} action={<Button onClick={onClear}>{text.clear}</Button>}>
        {text.none}
      </Empty>
    )
  return (
    <VirtualTable
      label={text.title}
      columns={columns}
      rows={rows}
      rowKey={({ id }) => id}
      onOpen={({ id }) => onOpen(id)}
      isOpen={({ id }) => id === opened}
      onMore={null}
      isLoadingMore={false}
    />
  )
}

const columns: readonly Column<ProviderRow>[] = [
  {
    key: 'provider',
    head: text.columns.provider,
    isName: true,
    cell: ({ name, id }) => (
      <span className="cell-stack">
        <span>{name}</span>
        <code className="quiet">{id}</code>
      </span>
    ),
  },
  {
    key: 'state',
    head: text.columns.state,
    cell: row => {
      const { tone, icon, name, means } = stateOf(row)
      return (
        <Status tone={tone} icon={icon} title={means}>
          {name}
        </Status>
      )
    },
  },
  {
    key: 'key',
    head: text.columns.key,
    cell: ({ own }) =>
      own === null ? (
        <span className="quiet">–</span>
      ) : (
        <span className="cell-stack">
          <code>{own.mask}</code>
          {own.label !== null && <span className="quiet">{own.label}</span>}
        </span>
      ),
  },
  {
    key: 'models',
    head: text.columns.models,
    align: 'end',
    isOnCards: false,
    cell: ({ own }) => (own === null ? <span className="quiet">–</span> : <span className="tabular">{count(own.models)}</span>),
  },
  { key: 'place', head: text.columns.place, isOnCards: false, cell: ({ residency }) => <Tag>{residency === 'india' ? text.india : text.global}</Tag> },
  {
    key: 'tested',
    head: text.columns.tested,
    align: 'end',
    isOnCards: false,
    cell: ({ own }) => (own === null ? <span className="quiet">–</span> : <Time at={own.verified_at} />),
  },
]
