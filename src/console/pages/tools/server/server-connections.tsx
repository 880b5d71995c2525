import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiQuery } from '../../../api/queries.ts'
import { useMe } from '../../../app/me.tsx'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { DateOnly } from '../../../ui/data/time.tsx'
import { IconButton } from '../../../ui/forms/button.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { ConnectionState, OwnConnection } from '../tabs/connections-tab.tsx'
import { text } from '../text.ts'
import type { Connection, ToolServer } from '../use-tools.ts'
import { EndConnection } from './end-connection.tsx'

/** The connection of the person with a server, and for admins those of all members. */
export function ServerConnections({ server, isAdmin }: { readonly server: ToolServer; readonly isAdmin: boolean }) {
  const own = useQuery(apiQuery('listToolConnections', { query: { server_id: server.id } }))
  return (
    <>
      <p className="quiet">{text.connections.about}</p>
      <Loaded query={own}>{({ connections }) => <OwnConnection server={server} connection={connections[0]} />}</Loaded>
      {isAdmin && <Everybody server={server} />}
    </>
  )
}

function Everybody({ server }: { readonly server: ToolServer }) {
  const all = useQuery(apiQuery('listToolConnections', { query: { server_id: server.id, everybody: 'true' } }))
  const me = useMe()
  const [ending, setEnding] = useState<Connection | null>(null)
  return (
    <Panel title={text.connections.everybody} isFlush>
      <Loaded query={all}>
        {({ connections }) =>
          connections.length === 0 ? (
            <p className="panel-none quiet">{text.connections.nobody}</p>
          ) : (
            <Table label={text.connections.everybody} columns={columnsFor(setEnding)} rows={connections} rowKey={({ id }) => id} />
          )
        }
      </Loaded>
      {ending !== null && (
        <EndConnection connection={ending} whose={ending.user_id === me.user.id ? text.connections.you : ending.email} onClose={() => setEnding(null)} />
      )}
    </Panel>
  )
}

const columnsFor = (onEnd: (connection: Connection) => void): readonly Column<Connection>[] => [
  { key: 'person', head: text.connections.columns.person, isName: true, cell: ({ email }) => <MiddleCut text={email} max={36} /> },
  { key: 'state', head: text.connections.columns.state, cell: connection => <ConnectionState connection={connection} /> },
  {
    key: 'scopes',
    head: text.connections.columns.scopes,
    isOnCards: false,
    cell: ({ scopes }) => <span className="quiet">{scopes.join(', ') || text.connections.noScopes}</span>,
  },
  { key: 'since', head: text.connections.columns.since, align: 'end', cell: ({ created_at: at }) => <DateOnly at={at} /> },
  {
    key: 'acts',
    head: '',
    align: 'end',
    cell: connection => <IconButton icon="close" label={`${text.connections.end} ${connection.email}`} onClick={() => onEnd(connection)} />,
  },
]
