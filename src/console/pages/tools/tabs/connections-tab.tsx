import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiQuery } from '../../../api/queries.ts'
import { useMe } from '../../../app/me.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { DateOnly } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { EndConnection } from '../server/end-connection.tsx'
import { connectionShown, text } from '../text.ts'
import { type Connection, type ToolServer, useConnect, useToolServers } from '../use-tools.ts'

/** The state of a connection, as an icon and a word. */
export function ConnectionState({ connection }: { readonly connection: Connection | undefined }) {
  const { tone, icon, word, means } = connectionShown[connection?.state ?? 'none']
  return (
    <Status tone={tone} title={means} {...(icon === undefined ? {} : { icon })}>
      {word}
    </Status>
  )
}

/** The person's own connections: one card for each server that takes the token of a person. */
export function ConnectionsTab() {
  const servers = useToolServers()
  const own = useQuery(apiQuery('listToolConnections'))
  return (
    <Loaded query={servers}>
      {all => {
        const ofPeople = all.filter(({ auth }) => auth.kind === 'oauth_user')
        if (ofPeople.length === 0)
          return (
            <Panel>
              <Empty icon="link" title={text.connections.emptyTitle}>
                {text.connections.empty}
              </Empty>
            </Panel>
          )
        return (
          <>
            <p className="quiet">{text.connections.about}</p>
            <Loaded query={own}>
              {({ connections }) =>
                ofPeople.map(server => <OwnConnection key={server.id} server={server} connection={connections.find(each => each.server_id === server.id)} />)
              }
            </Loaded>
          </>
        )
      }}
    </Loaded>
  )
}

interface OwnConnectionProps {
  readonly server: ToolServer
  readonly connection: Connection | undefined
}

/** The connection of the person with one server, with the ways to begin and to end it. */
export function OwnConnection({ server, connection }: OwnConnectionProps) {
  const me = useMe()
  const connect = useConnect()
  const [isEnding, setEnding] = useState(false)
  const isWorking = connection?.state === 'connected'
  const issuer = connection?.issuer ?? server.auth.issuer ?? ''
  return (
    <section className="connection-card" aria-label={server.name}>
      <div className="connection-facts">
        <p className="connection-name">
          {server.name} <ConnectionState connection={connection} />
        </p>
        <p className="quiet">
          {connection === undefined ? (
            text.connections.leaving(hostOf(issuer))
          ) : (
            <>
              {hostOf(issuer)} · {connection.scopes.join(', ') || text.connections.noScopes} · <DateOnly at={connection.created_at} />
            </>
          )}
        </p>
      </div>
      <div className="connection-acts">
        {!isWorking && (
          <Button look="primary" icon="link" isBusy={connect.isPending || connect.isSuccess} onClick={() => connect.mutate(server.id)}>
            {connection === undefined ? text.connections.connect : text.connections.again}
          </Button>
        )}
        {connection !== undefined && (
          <Button icon="close" onClick={() => setEnding(true)}>
            {text.connections.end}
          </Button>
        )}
      </div>
      {isEnding && connection !== undefined && (
        <EndConnection
          connection={connection}
          whose={connection.user_id === me.user.id ? text.connections.you : connection.email}
          onClose={() => setEnding(false)}
        />
      )}
    </section>
  )
}

/** Returns the host of an issuer, which is what a person recognises. */
const hostOf = (issuer: string): string => (URL.canParse(issuer) ? new URL(issuer).host : issuer)
