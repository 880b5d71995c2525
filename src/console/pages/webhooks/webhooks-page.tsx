import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { OnlyAdmins } from '../../app/only-admins.tsx'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Status } from '../../ui/data/status.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { DateOnly } from '../../ui/data/time.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { CreateWebhook } from './create-webhook.tsx'
import { text, webhookShown } from './text.ts'
import { useWebhooks, type Webhook } from './use-webhooks.ts'
import './webhooks.css'

const route = getRouteApi('/webhooks')

/** The endpoints of the organisation. Owners and admins see them. */
export function WebhooksPage() {
  return hasRole(useMe(), 'admin') ? <Endpoints /> : <OnlyAdmins title={text.title} icon="webhook" what={text.onlyAdmins} />
}

/** How an endpoint is, as an icon and a word. */
export function WebhookState({ webhook }: { readonly webhook: Webhook }) {
  const { tone, word, means } = webhookShown(webhook)
  return (
    <Status tone={tone} title={means}>
      {word}
    </Status>
  )
}

const columns: readonly Column<Webhook>[] = [
  {
    key: 'url',
    head: text.columns.url,
    isName: true,
    cell: ({ url, description }) => (
      <span className="cell-stack">
        <MiddleCut text={url} max={60} />
        {description !== '' && <span className="quiet">{description}</span>}
      </span>
    ),
  },
  { key: 'state', head: text.columns.state, cell: webhook => <WebhookState webhook={webhook} /> },
  {
    key: 'events',
    head: text.columns.events,
    cell: ({ subscribe_all: all, event_types: types }) => (all ? text.allEvents : text.someEvents(types.length)),
  },
  { key: 'dropped', head: text.columns.dropped, align: 'end', isOnCards: false, cell: ({ dropped }) => count(dropped) },
  { key: 'created', head: text.columns.created, align: 'end', isOnCards: false, cell: ({ created_at: at }) => <DateOnly at={at} /> },
]

function Endpoints() {
  const { new: isNew } = route.useSearch()
  const navigate = route.useNavigate()
  const toEndpoint = useNavigate()
  const webhooks = useWebhooks()
  const create = useCallback(() => void navigate({ search: { new: true }, resetScroll: false }), [navigate])
  usePageCommands(useMemo(() => [{ id: 'new-webhook', label: text.create, group: text.title, icon: 'plus' as const, keys: 'n', run: create }], [create]))
  const open = (id: number): void => void toEndpoint({ to: '/webhooks/$id', params: { id: String(id) } })
  const button = (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={text.intro} actions={button}>
      <Panel isFlush>
        <Loaded query={webhooks} skeleton={<Skeleton lines={4} height={28} />}>
          {({ webhooks: rows }) =>
            rows.length === 0 ? (
              <Empty icon="webhook" title={text.emptyTitle} action={button} command={text.emptyCommand}>
                {text.empty}
              </Empty>
            ) : (
              <Table label={text.title} columns={columns} rows={rows} rowKey={({ id }) => id} onOpen={({ id }) => open(id)} />
            )
          }
        </Loaded>
      </Panel>
      {isNew && webhooks.data && <CreateWebhook events={webhooks.data.events} onClose={() => void navigate({ search: {} })} onMade={open} />}
    </Page>
  )
}
