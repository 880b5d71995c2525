import { getRouteApi, Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { curlOf } from '../../../api/call.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { useMe } from '../../../app/me.tsx'
import { Status, Tag } from '../../../ui/data/status.tsx'
import { DateOnly } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { ErrorPanel } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Tabs } from '../../../ui/layout/tabs.tsx'
import { Menu, MenuItem } from '../../../ui/overlays/menu.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import '../agents.css'
import { EndAgent } from '../end-agent.tsx'
import { text as shared, statuses } from '../text.ts'
import { type AgentFamily, mayAct, useAgent, usePause, useWhomToAsk } from '../use-agents.ts'
import './agent.css'
import { type AgentTab, agentTabs, type TabProps } from '../agent-tabs.ts'
import { ConnectTab } from './access/connect-tab.tsx'
import { TokensTab } from './access/tokens-tab.tsx'
import { CallsTab } from './calls-tab.tsx'
import { FamilyTab } from './family-tab.tsx'
import { MemoryTab } from './memory/memory-tab.tsx'
import { OverviewTab } from './overview-tab.tsx'
import { RulesTab } from './rules-tab.tsx'
import { text } from './text.ts'
import { ToolsTab } from './tools/tools-tab.tsx'

const route = getRouteApi('/agents/$id')

/** One agent: who it is, what it spends and may do, and the way to stop it. */
export function AgentPage() {
  const { id } = route.useParams()
  const agent = useAgent(Number(id))
  if (agent.data !== undefined) return <KnownAgent key={agent.data.id} agent={agent.data} />
  return (
    <Page title="Agent">
      <Panel>{agent.isError ? <ErrorPanel error={agent.error} onRetry={() => void agent.refetch()} /> : <Skeleton lines={5} height={28} />}</Panel>
    </Page>
  )
}

function KnownAgent({ agent }: { readonly agent: AgentFamily }) {
  const { tab = 'overview' } = route.useSearch()
  const navigate = route.useNavigate()
  const me = useMe()
  const isMine = mayAct(me, agent)
  const askWhom = useWhomToAsk()
  const [isEnding, setEnding] = useState(false)
  const choose = useMemo(
    () => (next: string) =>
      void navigate({ search: next === 'overview' ? {} : { tab: next as Exclude<AgentTab, 'overview'> }, replace: true, resetScroll: false }),
    [navigate],
  )
  usePageCommands(
    useMemo(
      () => [
        ...agentTabs.map(each => ({ id: `agent-${each}`, label: text.tabs[each], group: agent.name, icon: 'right' as const, run: () => choose(each) })),
        ...(isMine && agent.status !== 'revoked'
          ? [{ id: 'agent-end', label: `${shared.endAgent}…`, group: agent.name, icon: 'trash' as const, run: () => setEnding(true) }]
          : []),
      ],
      [agent.name, agent.status, isMine, choose],
    ),
  )
  return (
    <Page
      title={agent.name}
      above={<Crumbs agent={agent} />}
      intro={<Facts agent={agent} />}
      actions={<Acts agent={agent} isMine={isMine} onConnect={() => choose('connect')} onEnd={() => setEnding(true)} />}
    >
      {agent.status === 'paused' && <Note icon="pause">{text.pausedNote}</Note>}
      {agent.status === 'revoked' && <Note icon="info">{text.endedNote}</Note>}
      {!isMine && agent.status !== 'revoked' && <Note icon="info">{askWhom(agent)}</Note>}
      <Tabs label={agent.name} value={tab} onChange={choose} tabs={agentTabs.map(each => ({ id: each, label: text.tabs[each] }))}>
        <div className="agent-tab">
          <Tab tab={tab} agent={agent} isMine={isMine && agent.status !== 'revoked'} />
        </div>
      </Tabs>
      {isEnding && <EndAgent agent={agent} onClose={() => setEnding(false)} />}
    </Page>
  )
}

function Tab({ tab, ...props }: TabProps & { readonly tab: AgentTab }) {
  switch (tab) {
    case 'overview':
      return <OverviewTab {...props} />
    case 'connect':
      return <ConnectTab {...props} />
    case 'family':
      return <FamilyTab {...props} />
    case 'tokens':
      return <TokensTab {...props} />
    case 'memory':
      return <MemoryTab {...props} />
    case 'calls':
      return <CallsTab {...props} />
    case 'rules':
      return <RulesTab {...props} />
    case 'tools':
      return <ToolsTab {...props} />
  }
}

/** The way from the list through the agents above. */
function Crumbs({ agent: { parents } }: { readonly agent: AgentFamily }) {
  return (
    <nav className="crumbs" aria-label={text.crumbs}>
      <Link to="/agents">{shared.title}</Link>
      {[...parents].reverse().map(({ id, name }) => (
        <span key={id}>
          <Icon name="right" size={12} />
          <Link to="/agents/$id" params={{ id: String(id) }}>
            {name}
          </Link>
        </span>
      ))}
    </nav>
  )
}

function Facts({ agent }: { readonly agent: AgentFamily }) {
  const me = useMe()
  const { tone, icon, name, means } = statuses[agent.status]
  return (
    <span className="agent-facts">
      <Status tone={tone} icon={icon} title={means}>
        {name}
      </Status>
      {agent.playground && <Tag>playground</Tag>}
      <span>
        id <code>{agent.id}</code>
      </span>
      <span>{text.ownedBy(agent.owner_uid !== null && agent.owner_uid === me.user.id ? text.you : agent.owner_name)}</span>
      <span>
        since <DateOnly at={agent.created_at} />
      </span>
    </span>
  )
}

interface ActsProps {
  readonly agent: AgentFamily
  readonly isMine: boolean
  readonly onConnect: () => void
  readonly onEnd: () => void
}

function Acts({ agent, isMine, onConnect, onEnd }: ActsProps) {
  const pause = usePause()
  const copy = (what: string): void =>
    void navigator.clipboard.writeText(what).then(
      () => toast(text.copied),
      () => toast('The browser did not allow copying.', 'bad'),
    )
  const isPaused = agent.status === 'paused'
  return (
    <>
      {isMine && agent.status !== 'revoked' && (
        <>
          {!agent.playground && (
            <span className="agent-connect">
              <Button icon="link" onClick={onConnect}>
                {text.connect}
              </Button>
            </span>
          )}
          <Button icon={isPaused ? 'play' : 'pause'} isBusy={pause.isPending} onClick={() => pause.mutate({ id: agent.id, pause: !isPaused })}>
            {isPaused ? shared.resume : shared.pause}
          </Button>
          <Button look="danger" icon="trash" onClick={onEnd}>
            {shared.endAgent}
          </Button>
        </>
      )}
      <Menu label={text.more} trigger={<Icon name="more" />}>
        <MenuItem icon="link" onClick={() => copy(location.href)}>
          {text.copyLink}
        </MenuItem>
        <MenuItem icon="copy" onClick={() => copy(String(agent.id))}>
          {text.copyId}
        </MenuItem>
        <MenuItem icon="terminal" onClick={() => copy(curlOf('getAgentConsole', { path: { id: agent.id } }))}>
          {text.copyCurl}
        </MenuItem>
      </Menu>
    </>
  )
}

/** A sentence about the whole agent, above its tabs. */
function Note({ icon, children }: { readonly icon: 'pause' | 'info'; readonly children: string }) {
  return (
    <p className="agent-note">
      <Icon name={icon} />
      {children}
    </p>
  )
}
