import { useMutation, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { Facts } from '../../../ui/data/facts.tsx'
import { DateOnly } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Copy } from '../../../ui/forms/copy.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type PinDetail, type ToolServer, toolsChanged } from '../use-tools.ts'
import { BlockTool } from './block-tool.tsx'
import { Definition, DefinitionDiff } from './definition.tsx'
import { PinStatus } from './tools-of-server.tsx'

interface ToolViewProps {
  readonly server: ToolServer
  readonly name: string
  readonly isAdmin: boolean
  readonly onBack: () => void
}

/** One tool: what its server says of it, what changed since the approval, and the acts of an admin. */
export function ToolView({ server, name, isAdmin, onBack }: ToolViewProps) {
  const tool = useQuery({ ...apiQuery('getServerTool', { path: { id: server.id, tool: name } }), select: ({ tool: found }) => found })
  return (
    <>
      <div>
        <Button size="sm" look="ghost" icon="back" onClick={onBack}>
          {text.pin.back}
        </Button>
      </div>
      {tool.data === undefined ? (
        <Panel>
          <Loaded query={tool} skeleton={<Skeleton lines={8} height={20} />}>
            {() => null}
          </Loaded>
        </Panel>
      ) : (
        <KnownTool server={server} tool={tool.data} isAdmin={isAdmin} />
      )}
    </>
  )
}

function KnownTool({ server, tool, isAdmin }: { readonly server: ToolServer; readonly tool: PinDetail; readonly isAdmin: boolean }) {
  const [isBlocking, setBlocking] = useState(false)
  const approve = useMutation({
    mutationFn: () => api('approveTools', { path: { id: server.id }, body: { tools: [{ name: tool.name, hash: tool.hash }] } }),
    onSuccess: async () => {
      await toolsChanged()
      toast(text.pin.approved(tool.name))
    },
    // The server may show another definition by now, which the person has not seen.
    onError: () => void toolsChanged(),
  })
  const { mutate, isPending } = approve
  const mayApprove = isAdmin && tool.approvable && tool.state !== 'approved'
  const mayBlock = isAdmin && tool.state !== 'blocked'
  usePageCommands(
    useMemo(
      () => (mayApprove && !isPending ? [{ id: 'approve-tool', label: text.pin.approve, group: tool.name, icon: 'check' as const, run: () => mutate() }] : []),
      [mayApprove, isPending, tool.name, mutate],
    ),
  )
  const isChanged = tool.approved_definition !== null && tool.approved_hash !== tool.hash
  return (
    <>
      <header className="tool-head">
        <div>
          <h2>{tool.name}</h2>
          <PinStatus state={tool.state} />
        </div>
        <div className="tool-acts">
          {mayApprove && (
            <Button look="primary" icon="check" isBusy={isPending} onClick={() => mutate()}>
              {isChanged ? text.pin.approveAgain : text.pin.approve}
            </Button>
          )}
          {mayBlock && (
            <Button icon="stop" onClick={() => setBlocking(true)}>
              {text.pin.block}
            </Button>
          )}
        </div>
      </header>
      {approve.error && <InlineError error={apiErrorOf(approve.error)} />}
      <Findings tool={tool} />
      {isChanged && (
        <Panel title={text.pin.changes} note={text.pin.changesNote} isFlush>
          <DefinitionDiff approved={tool.approved_definition} seen={tool.definition} />
        </Panel>
      )}
      <div className="tool-columns">
        <Definition definition={tool.definition} />
        <Panel>
          <PinFacts tool={tool} />
        </Panel>
      </div>
      {isBlocking && <BlockTool serverId={server.id} name={tool.name} onClose={() => setBlocking(false)} />}
    </>
  )
}

function Findings({ tool: { findings } }: { readonly tool: PinDetail }) {
  if (findings.length === 0) return null
  const isBarred = findings.some(({ blocks }) => blocks)
  return (
    <section className={isBarred ? 'findings findings-bad' : 'findings'} aria-label={text.pin.findings}>
      <Icon name={isBarred ? 'bad' : 'info'} />
      <div>
        <p className="waiting-title">{isBarred ? text.pin.blocks : text.pin.findings}</p>
        <ul>
          {findings.map(({ kind, at, code_point: point }) => (
            <li key={`${kind}${at}`}>
              <code>{at}</code>: {text.pin.finding[kind] ?? kind}
              {point !== null && ` (${point})`}
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}

const shortHash = 12

function PinFacts({ tool }: { readonly tool: PinDetail }) {
  const { facts } = text.pin
  return (
    <Facts
      facts={[
        [facts.own, <code key="own">{tool.upstream_name}</code>],
        [
          facts.hash,
          <span key="hash" className="pin-hash">
            <code title={tool.hash}>{tool.hash.slice(0, shortHash)}</code>
            <Copy text={tool.hash} label={text.pin.copyHash} />
          </span>,
        ],
        [facts.first, <DateOnly key="first" at={tool.first_seen_at} />],
        [facts.seen, <DateOnly key="seen" at={tool.seen_at} />],
        [facts.approved, <DateOnly key="approved" at={tool.approved_at} />],
        ...(tool.blocked_at === null
          ? []
          : [
              [
                facts.blocked,
                <span key="blocked">
                  <DateOnly at={tool.blocked_at} />
                  {tool.blocked_reason !== null && `: ${tool.blocked_reason}`}
                </span>,
              ] as const,
            ]),
        ...(tool.gone_at === null ? [] : [[facts.gone, <DateOnly key="gone" at={tool.gone_at} />] as const]),
      ]}
    />
  )
}
