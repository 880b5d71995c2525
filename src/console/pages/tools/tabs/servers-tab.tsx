import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Money } from '../../../ui/data/money.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { healthOf, text } from '../text.ts'
import { type ToolServer, useToolServers, waitingOf } from '../use-tools.ts'

/** How a server is, as an icon and a word. */
export function Health({ server }: { readonly server: ToolServer }) {
  const { tone, icon, word, means } = healthOf(server)
  return (
    <Status tone={tone} title={means} {...(icon === undefined ? {} : { icon })}>
      {word}
    </Status>
  )
}

const columns: readonly Column<ToolServer>[] = [
  {
    key: 'server',
    head: text.columns.server,
    isName: true,
    cell: ({ name, slug }) => (
      <span className="cell-stack">
        <MiddleCut text={name} max={36} />
        <span className="quiet">{slug}</span>
      </span>
    ),
  },
  { key: 'state', head: text.columns.state, cell: server => <Health server={server} /> },
  {
    key: 'tools',
    head: text.columns.tools,
    cell: server => (
      <span className="cell-stack">
        <span className="tabular">{text.approved(server.tools.approved)}</span>
        {waitingOf(server) > 0 && <span className="tools-waiting">{text.waiting(waitingOf(server))}</span>}
      </span>
    ),
  },
  {
    key: 'credential',
    head: text.columns.credential,
    isOnCards: false,
    cell: ({ auth }) => <span className="quiet">{text.server.credentials[auth.kind]}</span>,
  },
  {
    key: 'price',
    head: text.columns.price,
    align: 'end',
    isOnCards: false,
    cell: ({ price_inr_per_call: price }) => (price === 0 ? <span className="quiet">{text.server.facts.free}</span> : <Money inr={price} />),
  },
  { key: 'read', head: text.columns.read, align: 'end', isOnCards: false, cell: ({ last_sync_at: at }) => <Time at={at} /> },
]

/** The servers, with what waits for a person. */
export function ServersTab({ registerButton }: { readonly registerButton: ReactNode }) {
  const servers = useToolServers()
  const toServer = useNavigate()
  if (servers.data === undefined && servers.isError && apiErrorOf(servers.error).code === 'unavailable')
    return (
      <Panel>
        <Empty icon="server" title={text.off}>
          {apiErrorOf(servers.error).message}
        </Empty>
      </Panel>
    )
  return (
    <Panel isFlush>
      <Loaded query={servers} skeleton={<Skeleton lines={5} height={28} />}>
        {rows =>
          rows.length === 0 ? (
            <Empty icon="server" title={text.emptyTitle} action={registerButton} command={text.emptyCommand}>
              {text.empty}
            </Empty>
          ) : (
            <Table
              label={text.tabs.servers}
              columns={columns}
              rows={rows}
              rowKey={({ id }) => id}
              onOpen={({ id }) => void toServer({ to: '/tools/$id', params: { id } })}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
