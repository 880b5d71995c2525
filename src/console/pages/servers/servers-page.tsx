import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { askSentence, useOwners } from '../../app/whom-to-ask.ts'
import { Status, Tag } from '../../ui/data/status.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { resultOf } from './checklist.tsx'
import type { OwnServer, ServersSearch } from './own-server.ts'
import { ServerForm } from './server-form.tsx'
import { ServerPeek } from './server-peek.tsx'
import './servers.css'
import { text } from './text.ts'
import { useServers } from './use-servers.ts'

const route = getRouteApi('/servers')

/** The own servers of the organisation. One of them can be open beside the list. */
export function ServersPage() {
  const { server: openId, new: isNew } = route.useSearch()
  const navigate = route.useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const servers = useServers()
  const [changed, setChanged] = useState<OwnServer | null>(null)
  const show = useCallback((search: ServersSearch) => void navigate({ search, resetScroll: false }), [navigate])
  const register = useCallback(() => show({ new: true }), [show])
  usePageCommands(
    useMemo(
      () => (isAdmin ? [{ id: 'register-own-server', label: text.register, group: text.title, icon: 'plus' as const, keys: 'n', run: register }] : []),
      [isAdmin, register],
    ),
  )
  const registerButton = isAdmin && (
    <Button look="primary" icon="plus" onClick={register}>
      {text.register}
    </Button>
  )
  return (
    <Page title={text.title} intro={isAdmin ? text.intro : `${text.intro} ${text.introAsk(owners)}`} actions={registerButton}>
      <Panel isFlush>
        <Loaded query={servers} skeleton={<Skeleton lines={4} height={28} />}>
          {rows =>
            rows.length === 0 ? (
              <Empty icon="terminal" title={text.emptyTitle} action={registerButton}>
                {text.empty}
              </Empty>
            ) : (
              <Table
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={({ id }) => id}
                onOpen={({ id }) => show({ server: id })}
                isOpen={({ id }) => id === openId}
              />
            )
          }
        </Loaded>
      </Panel>
      {openId !== undefined && servers.data && (
        <ServerPeek
          key={openId}
          server={servers.data.find(({ id }) => id === openId) ?? null}
          isAdmin={isAdmin}
          ask={askSentence(owners)}
          onChange={() => setChanged(servers.data.find(({ id }) => id === openId) ?? null)}
          onClose={() => show({})}
        />
      )}
      {isNew && isAdmin && <ServerForm server={null} onClose={() => show({})} onSaved={server => show({ server })} />}
      {changed && <ServerForm key={changed.id} server={changed} onClose={() => setChanged(null)} onSaved={() => setChanged(null)} />}
    </Page>
  )
}

const columns: readonly Column<OwnServer>[] = [
  {
    key: 'name',
    head: text.columns.name,
    isName: true,
    cell: ({ name, provider_ref: ref }) => (
      <span className="cell-stack">
        <span>{name}</span>
        <code className="quiet">{ref}</code>
      </span>
    ),
  },
  { key: 'model', head: text.columns.model, cell: ({ model }) => <code>{model}</code> },
  {
    key: 'state',
    head: text.columns.state,
    cell: ({ compliance }) => {
      const { tone, name } = resultOf(compliance)
      return <Status tone={tone}>{name}</Status>
    },
  },
  { key: 'place', head: text.columns.place, isOnCards: false, cell: ({ residency }) => <Tag>{residency === 'india' ? text.india : text.global}</Tag> },
  {
    key: 'key',
    head: text.columns.key,
    isOnCards: false,
    cell: ({ key_mask: mask }) => (mask === null ? <span className="quiet">{text.noKey}</span> : <code>{mask}</code>),
  },
  { key: 'tested', head: text.columns.tested, align: 'end', isOnCards: false, cell: ({ checked_at: at }) => <Time at={at} /> },
]
