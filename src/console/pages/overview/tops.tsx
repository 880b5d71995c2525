import { Link } from '@tanstack/react-router'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { percent, shortCount } from '../../ui/format/numbers.ts'
import type { Activity } from './figures.ts'
import { text } from './text.ts'

const shownMax = 5

interface Used {
  readonly requests: number
  readonly tokens: number
  readonly value_inr: number
}

/** The columns that both tables share. Shares are of all usage of the span, by value, or by calls where all is free. */
function figures<T extends Used>(totals: Used): Column<T>[] {
  const share = (row: T): number => (totals.value_inr > 0 ? row.value_inr / totals.value_inr : totals.requests === 0 ? 0 : row.requests / totals.requests)
  return [
    { key: 'calls', head: 'Calls', align: 'end', isOnCards: false, cell: row => shortCount(row.requests) },
    { key: 'tokens', head: 'Tokens', align: 'end', isOnCards: false, cell: row => shortCount(row.tokens) },
    { key: 'value', head: 'Value', align: 'end', cell: row => <Money inr={row.value_inr} /> },
    { key: 'share', head: 'Share', align: 'end', cell: row => percent(share(row)) },
  ]
}

/** A name that leads to what is behind its figures. */
function NameLink({ to, search, name }: { readonly to: string; readonly search: object; readonly name: string }) {
  return (
    <Link to={to} search={search as never} className="row-link">
      <MiddleCut text={name} max={28} />
    </Link>
  )
}

const KeyName = ({ id, name }: { readonly id: number | null; readonly name: string }) =>
  id === null ? <MiddleCut text={name} max={28} /> : <NameLink to="/keys" search={{ key: id }} name={name} />

type Model = Activity['top_models'][number]

export function TopModels({ activity }: { readonly activity: Activity }) {
  const name: Column<Model> = {
    key: 'model',
    head: 'Model',
    isName: true,
    cell: row => <NameLink to="/usage" search={{ model: row.model }} name={row.model} />,
  }
  return (
    <Table
      isCompact
      label={text.models}
      columns={[name, ...figures<Model>(activity.totals)]}
      rows={activity.top_models.slice(0, shownMax)}
      rowKey={row => row.model}
    />
  )
}

type Agent = NonNullable<Activity['by_agent']>[number]

/** The agents that used most. The row of calls without an agent, and the row of all further agents, are left out. */
export function TopAgents({ activity }: { readonly activity: Activity }) {
  const agents = (activity.by_agent ?? []).filter(({ agent_id: id }) => id !== null)
  if (agents.length === 0) return <p className="quiet panel-text">{text.noAgents}</p>
  const name: Column<Agent> = {
    key: 'agent',
    head: 'Agent',
    isName: true,
    cell: row => (
      <Link to="/agents/$id" params={{ id: String(row.agent_id) }} className="row-link">
        <MiddleCut text={row.name ?? `#${row.agent_id}`} max={26} />
      </Link>
    ),
  }
  return (
    <Table
      isCompact
      label={text.agents}
      columns={[name, ...figures<Agent>(activity.totals)]}
      rows={agents.slice(0, shownMax)}
      rowKey={row => row.agent_id ?? 0}
    />
  )
}

type Member = NonNullable<Activity['by_member']>[number]

/** The people whose keys and agents used most. A name leads to what that person used. */
export function TopPeople({ activity }: { readonly activity: Activity }) {
  const people = (activity.by_member ?? []).filter(({ uid }) => uid !== null)
  if (people.length === 0) return <p className="quiet panel-text">{text.noPeople}</p>
  const name: Column<Member> = {
    key: 'person',
    head: 'Person',
    isName: true,
    cell: row => <NameLink to="/usage" search={row.uid === null ? {} : { uid: row.uid }} name={row.name ?? row.email ?? `Person ${row.uid}`} />,
  }
  return (
    <Table isCompact label={text.people} columns={[name, ...figures<Member>(activity.totals)]} rows={people.slice(0, shownMax)} rowKey={row => row.uid ?? 0} />
  )
}

type Key = NonNullable<Activity['top_keys']>[number]

export function TopKeys({ activity }: { readonly activity: Activity }) {
  const name: Column<Key> = { key: 'key', head: 'Key', isName: true, cell: row => <KeyName id={row.key_id} name={row.name ?? text.noKey} /> }
  return (
    <Table
      isCompact
      label={text.keys}
      columns={[name, ...figures<Key>(activity.totals)]}
      rows={(activity.top_keys ?? []).slice(0, shownMax)}
      rowKey={row => row.key_id ?? 0}
    />
  )
}
