import { useMutation } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { useOwners } from '../../../app/whom-to-ask.ts'
import { MiddleCut } from '../../../ui/data/code.tsx'
import { Money } from '../../../ui/data/money.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { ErrorPanel } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Tabs } from '../../../ui/layout/tabs.tsx'
import { Menu, MenuItem } from '../../../ui/overlays/menu.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { type ServerSearch, serverTabs } from '../search.ts'
import { Health } from '../tabs/servers-tab.tsx'
import { healthOf, text } from '../text.ts'
import '../tools.css'
import { type ToolServer, toolsChanged, useToolServers } from '../use-tools.ts'
import { ServerConnections } from './server-connections.tsx'
import { RemoveServer, TurnOff, useTurn } from './server-dialogs.tsx'
import { ServerSettings } from './server-settings.tsx'
import { ToolView } from './tool-view.tsx'
import { ToolsOfServer } from './tools-of-server.tsx'

const route = getRouteApi('/tools/$id')

/** One MCP server: its tools and their definitions, who is connected, and its settings. */
export function ToolServerPage() {
  const { id } = route.useParams()
  const servers = useToolServers()
  const server = servers.data?.find(each => each.id === id)
  if (server !== undefined) return <KnownServer key={server.id} server={server} />
  return (
    <Page title={text.title} above={<Crumbs />}>
      <Panel>
        {servers.data !== undefined ? (
          <Empty icon="server" title={text.server.noneTitle}>
            {text.server.none}
          </Empty>
        ) : servers.isError ? (
          <ErrorPanel error={servers.error} onRetry={() => void servers.refetch()} />
        ) : (
          <Skeleton lines={5} height={28} />
        )}
      </Panel>
    </Page>
  )
}

function Crumbs() {
  return (
    <nav className="crumbs" aria-label="Pages above">
      <Link to="/tools">{text.server.back}</Link>
    </nav>
  )
}

function KnownServer({ server }: { readonly server: ToolServer }) {
  const search = route.useSearch()
  const { tab = 'tools', tool } = search
  const navigate = route.useNavigate()
  const toList = useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const [asked, setAsked] = useState<'off' | 'remove' | null>(null)
  const show = useCallback((next: ServerSearch) => void navigate({ search: next, resetScroll: false }), [navigate])
  const hasConnections = server.auth.kind === 'oauth_user'
  const shown = useMemo(() => serverTabs.filter(each => each !== 'connections' || hasConnections), [hasConnections])
  usePageCommands(
    useMemo(
      () =>
        shown.map(each => ({
          id: `server-${each}`,
          label: text.server.tabs[each],
          group: server.name,
          icon: 'right' as const,
          run: () => show(tabSearch(each)),
        })),
      [shown, server.name, show],
    ),
  )
  return (
    <Page
      title={server.name}
      above={<Crumbs />}
      intro={<Facts server={server} />}
      actions={isAdmin && <Acts server={server} onTurnOff={() => setAsked('off')} onRemove={() => setAsked('remove')} />}
    >
      {server.last_error !== null && server.state === 'on' && (
        <p className="server-note">
          <Icon name={server.last_error === 'connection_required' ? 'link' : 'warn'} />
          {healthOf(server).means}
        </p>
      )}
      <Tabs
        label={server.name}
        value={tab}
        onChange={next => show(tabSearch(next as (typeof serverTabs)[number]))}
        tabs={shown.map(id => ({ id, label: text.server.tabs[id] }))}
      >
        <div className="tools-tab">
          {tab === 'tools' &&
            (tool === undefined ? (
              <ToolsOfServer server={server} state={search.state} isAdmin={isAdmin} onShow={show} />
            ) : (
              <ToolView
                key={tool}
                server={server}
                name={tool}
                isAdmin={isAdmin}
                onBack={() => show(search.state === undefined ? {} : { state: search.state })}
              />
            ))}
          {tab === 'connections' && <ServerConnections server={server} isAdmin={isAdmin} />}
          {tab === 'settings' && <ServerSettings server={server} isAdmin={isAdmin} membersOnly={text.settings.membersOnly(owners)} />}
        </div>
      </Tabs>
      {asked === 'off' && <TurnOff server={server} onClose={() => setAsked(null)} />}
      {asked === 'remove' && <RemoveServer server={server} onClose={() => setAsked(null)} onRemoved={() => void toList({ to: '/tools' })} />}
    </Page>
  )
}

const tabSearch = (tab: (typeof serverTabs)[number]): ServerSearch => (tab === 'tools' ? {} : { tab })

function Facts({ server }: { readonly server: ToolServer }) {
  const { facts, credentials } = text.server
  return (
    <span className="server-facts">
      <Health server={server} />
      <span>
        {facts.slug} <code>{server.slug}</code>
      </span>
      <MiddleCut text={server.url} max={48} />
      <span>{credentials[server.auth.kind]}</span>
      {server.price_inr_per_call === 0 ? (
        <span>{facts.free}</span>
      ) : (
        <span>
          <Money inr={server.price_inr_per_call} /> {facts.price}
        </span>
      )}
      {server.last_sync_at === null ? (
        <span>{facts.unread}</span>
      ) : (
        <span>
          {facts.read} <Time at={server.last_sync_at} />
        </span>
      )}
    </span>
  )
}

interface ActsProps {
  readonly server: ToolServer
  readonly onTurnOff: () => void
  readonly onRemove: () => void
}

function Acts({ server, onTurnOff, onRemove }: ActsProps) {
  const turnOn = useTurn(server)
  const read = useMutation({
    mutationFn: () => api('syncToolServer', { path: { id: server.id } }),
    onSuccess: async ({ sync }) => {
      await toolsChanged()
      if (sync.error === null) toast(text.server.readDone(sync.new, sync.changed, sync.gone))
      else toast(sync.detail ?? sync.error, 'bad')
    },
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
  return (
    <>
      <Button icon="rotate" isBusy={read.isPending} onClick={() => read.mutate()}>
        {text.server.read}
      </Button>
      {server.state === 'on' ? (
        <Button look="danger" icon="stop" onClick={onTurnOff}>
          {text.server.turnOff}
        </Button>
      ) : (
        <Button icon="play" isBusy={turnOn.isPending} onClick={() => turnOn.mutate('on')}>
          {text.server.turnOn}
        </Button>
      )}
      <Menu label={text.more} trigger={<Icon name="more" />}>
        <MenuItem icon="trash" isDanger onClick={onRemove}>
          {text.server.remove}…
        </MenuItem>
      </Menu>
    </>
  )
}
