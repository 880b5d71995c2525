import { getRouteApi, Link } from '@tanstack/react-router'
import { curlOf } from '../../../api/call.ts'
import { Code, MiddleCut } from '../../../ui/data/code.tsx'
import { Facts } from '../../../ui/data/facts.tsx'
import { Money } from '../../../ui/data/money.tsx'
import { Status } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { count, percent } from '../../../ui/format/numbers.ts'
import { Fold } from '../../../ui/forms/choices.tsx'
import { CopyButton } from '../../../ui/forms/copy.tsx'
import { ErrorPanel } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { RunRequests } from '../requests/request-list.tsx'
import '../runs.css'
import { ownerOf } from '../search.ts'
import { text as shared, stateWords } from '../text.ts'
import { useRun, type WholeRun } from '../use-runs.ts'
import { CapsPanel } from './caps-panel.tsx'
import { FamilyPanel } from './family-panel.tsx'
import { RunActs } from './run-acts.tsx'
import { text } from './run-text.ts'

const route = getRouteApi('/runs/one')

/** One run: what it used, what caps it, and the acts that hold, raise or end it. */
export function RunPage() {
  const { id, agent, key } = route.useSearch()
  const run = useRun(id, agent !== undefined ? { agent_id: agent } : key !== undefined ? { key_id: key } : {})
  if (run.data !== undefined) return <KnownRun run={run.data} />
  return (
    <Page title={shared.run} above={<Above />}>
      <Panel>{run.isError ? <ErrorPanel error={run.error} onRetry={() => void run.refetch()} /> : <Skeleton lines={5} height={28} />}</Panel>
    </Page>
  )
}

function Above() {
  return (
    <nav className="crumbs" aria-label="Above this run">
      <Link to="/runs">{text.runs}</Link>
    </nav>
  )
}

function KnownRun({ run }: { readonly run: WholeRun }) {
  const { run_id: id, agent_id: agentId, key_id: keyId } = run
  return (
    <Page title={id.length > 48 ? `${id.slice(0, 40)}…` : id} above={<Above />} intro={<Intro run={run} />} actions={<RunActs run={run} />}>
      <div className="run-columns">
        <CapsPanel run={run} />
        <SumsPanel run={run} />
      </div>
      <RunRequests runId={id} agentId={agentId} keyId={keyId} />
      <div className="run-columns">
        <FamilyPanel run={run} />
        <Panel title={text.modelsTitle} isFlush>
          <Table label={text.modelsTitle} columns={modelColumns} rows={run.by_model} rowKey={({ model }) => model} />
        </Panel>
      </div>
      <Fold title="Show as curl">
        <Code text={curlOf('getRunConsole', { path: { id }, query: ownerOf(run) })} />
        <CopyButton text={id} label="Copy id" />
      </Fold>
    </Page>
  )
}

function Intro({ run }: { readonly run: WholeRun }) {
  const { state, agent_id: agentId, agent_name: agent, key_id: keyId, key_name: key, first_at: first, last_at: last, ended_by: by } = run
  const { tone, icon, name, means } = stateWords[state]
  return (
    <span className="run-facts">
      <Status tone={tone} icon={icon} title={means}>
        {name}
      </Status>
      {agentId !== null && (
        <Link to="/agents/$id" params={{ id: String(agentId) }}>
          {agent ?? `agent ${agentId}`}
        </Link>
      )}
      {keyId !== null && (
        <Link to="/keys" search={{ key: keyId }}>
          <MiddleCut text={key ?? `key ${keyId}`} />
        </Link>
      )}
      <span className="quiet">
        {text.first} <Time at={first} />
      </span>
      <span className="quiet">
        {text.last} <Time at={last} />
      </span>
      {by !== null && <span className="quiet">{text.endedBy(by.kind, by.id)}</span>}
    </span>
  )
}

function SumsPanel({ run }: { readonly run: WholeRun }) {
  return (
    <Panel title={text.sumsTitle}>
      <Facts
        facts={[
          [text.cost, <Money key="value" inr={run.value_inr} />],
          [text.charged, <Money key="cost" inr={run.cost_inr} />],
          [text.calls, count(run.calls)],
          [text.errors, count(run.errors)],
          [text.prompt, count(run.prompt_tokens)],
          [text.completion, count(run.completion_tokens)],
          [text.cached, run.cached_share === null ? '–' : percent(run.cached_share)],
        ]}
      />
    </Panel>
  )
}

const modelColumns: readonly Column<WholeRun['by_model'][number]>[] = [
  { key: 'model', head: text.model, isName: true, cell: ({ model }) => <MiddleCut text={model} max={34} /> },
  { key: 'calls', head: text.calls, align: 'end', cell: ({ calls }) => count(calls) },
  { key: 'tokens', head: text.tokens, align: 'end', isOnCards: false, cell: part => count(part.prompt_tokens + part.completion_tokens) },
  { key: 'cost', head: text.cost, align: 'end', cell: ({ value_inr: inr }) => <Money inr={inr} /> },
]
