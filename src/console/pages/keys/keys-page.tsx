import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Status, Tag } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { DateOnly, Time, useNow } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { type ConnectClient, text as connectText } from '../connect/text.ts'
import { ConnectWithKey } from './connect-with-key.tsx'
import { CreateKey } from './create-key.tsx'
import { KeyFilters } from './filters/key-filters.tsx'
import { type KeyAct, KeyActs } from './key-acts.tsx'
import { KeyDialogs, type OpenDialog } from './key-dialogs.tsx'
import { KeyPeek } from './key-peek.tsx'
import './keys.css'
import { stateOf, text } from './text.ts'
import { type ApiKey, useChangeKey, useKeys, useMemberNames } from './use-keys.ts'

const route = getRouteApi('/keys')

/** The keys of the organisation. The gateway searches, filters and sorts them. One of them can be open beside the list. */
export function KeysPage() {
  const { key: openKey, new: isNew, connect, ...filters } = route.useSearch()
  const navigate = route.useNavigate()
  const keys = useKeys(filters)
  const [dialog, setDialog] = useState<OpenDialog | null>(null)
  const open = useCallback(
    (key: number | null) => void navigate({ search: ({ key: _, new: __, ...rest }) => (key === null ? rest : { ...rest, key }), resetScroll: false }),
    [navigate],
  )
  const create = useCallback(() => void navigate({ search: ({ key: _, ...rest }) => ({ ...rest, new: true }), resetScroll: false }), [navigate])
  const connectTo = (client: ConnectClient | undefined): void =>
    void navigate({ search: ({ connect: _, ...rest }) => (client === undefined ? rest : { ...rest, connect: client }), resetScroll: false })
  const filter = useCallback(
    (changes: object) => void navigate({ search: before => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [navigate],
  )
  const clear = useCallback(() => void navigate({ search: {}, replace: true, resetScroll: false }), [navigate])
  usePageCommands(useMemo(() => [{ id: 'new-key', label: text.create, group: 'Keys', icon: 'plus' as const, keys: 'n', run: create }], [create]))
  const change = useChangeKey(({ name, enabled }) => toast(enabled ? text.enabledToast(name) : text.disabledToast(name)))
  const act = (key: ApiKey, name: KeyAct): void => {
    if (name === 'rotate' || name === 'revoke') setDialog({ key, name })
    else change.mutate({ id: key.id, changes: { enabled: name === 'enable' } }, { onError: error => toast(apiErrorOf(error).message, 'bad') })
  }
  const me = useMe()
  const nameOf = useMemberNames(me.user.id)
  const columns = useKeyColumns(act, nameOf)
  const isFiltered = Object.keys(filters).some(name => name !== 'sort')
  const isUnused = !isFiltered && keys.data?.length === 0 && !keys.hasNextPage
  return (
    <Page
      title={text.title}
      intro={text.intro}
      actions={
        <>
          <Button icon="link" onClick={() => connectTo('claude-code')}>
            {connectText.title}
          </Button>
          <Button look="primary" icon="plus" onClick={create}>
            {text.create}
          </Button>
        </>
      }
    >
      {!isUnused && <KeyFilters value={filters} onChange={filter} nameOf={nameOf} />}
      <Panel isFlush>
        <Loaded query={keys} skeleton={<Skeleton lines={6} height={28} />}>
          {rows =>
            rows.length === 0 && !keys.hasNextPage && isFiltered ? (
              <Empty icon="search" title={text.noneTitle} action={<Button onClick={clear}>{text.clear}</Button>}>
                {text.none}
              </Empty>
            ) : rows.length === 0 && !keys.hasNextPage ? (
              <Empty
                icon="key"
                title={text.emptyTitle}
                action={
                  <Button look="primary" icon="plus" onClick={create}>
                    {text.create}
                  </Button>
                }
                command={text.emptyCommand}
              >
                {text.empty}
              </Empty>
            ) : (
              <VirtualTable
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={({ id }) => open(id)}
                isOpen={({ id }) => id === openKey}
                onMore={keys.hasNextPage ? () => void keys.fetchNextPage() : null}
                isLoadingMore={keys.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
      {openKey !== undefined && keys.data && (
        <KeyPeek key={openKey} apiKey={keys.data.find(({ id }) => id === openKey) ?? null} onAct={act} onClose={() => open(null)} />
      )}
      {connect !== undefined && <ConnectWithKey key={connect} offersKey first={connect} onClose={() => connectTo(undefined)} />}
      {isNew && <CreateKey onClose={() => open(null)} />}
      {dialog && <KeyDialogs open={dialog} onClose={() => setDialog(null)} onGone={() => open(null)} />}
    </Page>
  )
}

function useKeyColumns(act: (key: ApiKey, name: KeyAct) => void, nameOf: (uid: number) => string): Column<ApiKey>[] {
  const me = useMe()
  const now = useNow()
  const isAdmin = hasRole(me, 'admin')
  return [
    {
      key: 'name',
      head: 'Name',
      isName: true,
      cell: key => (
        <span className="cell-stack">
          <MiddleCut text={key.name} max={34} />
          <code className="quiet">{key.prefix}…</code>
        </span>
      ),
    },
    {
      key: 'state',
      head: 'State',
      cell: key => {
        const { tone, name, means } = stateOf(key, now)
        return (
          <Status tone={tone} title={means}>
            {name}
          </Status>
        )
      },
    },
    { key: 'owner', head: 'Owner', isOnCards: false, cell: key => (key.owner === null ? <span className="quiet">Operator</span> : nameOf(key.owner.uid)) },
    { key: 'scope', head: 'For', isOnCards: false, cell: key => <Tag>{key.scope === 'full' ? 'everything' : 'calls'}</Tag> },
    {
      key: 'budget',
      head: 'This month',
      width: '13rem',
      cell: key => <BudgetBar capInr={key.budget_inr} spentInr={key.spend_month_inr} />,
    },
    { key: 'used', head: 'Last used', cell: key => <Time at={key.last_used_at} /> },
    { key: 'ends', head: 'Ends', isOnCards: false, cell: key => <DateOnly at={key.expires_at} none="no end" /> },
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: key => <KeyActs apiKey={key} isAdmin={isAdmin} isOwn={key.owner?.uid === me.user.id} onAct={name => act(key, name)} />,
    },
  ]
}
