import { MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { exactTime } from '../../ui/format/dates.ts'
import { lazy } from '../../ui/format/lazy.ts'
import { count } from '../../ui/format/numbers.ts'
import { latencyText } from '../activity/latency.ts'
import { OutcomeWord } from './outcome.tsx'
import { type Call, kinds, text } from './text.ts'

const clock = lazy(() => new Intl.DateTimeFormat('en-IN', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }))
const day = lazy(() => new Intl.DateTimeFormat('en-IN', { day: 'numeric', month: 'short' }))

/** Returns the name of a kind. A kind that this page does not know keeps its own name. */
export const kindText = (kind: string): string => (kinds as Readonly<Record<string, string>>)[kind] ?? kind

/** Returns who called: the agent, or the label that the program gave. */
export const callerOf = ({ agent_name: name, agent_id: id, agent_label: label }: Call): string | null => name ?? (id === null ? label : `Agent ${id}`)

/** The time of a call in the zone of the person, with its day. */
export function ClockTime({ at }: { readonly at: string }) {
  const date = new Date(at)
  return (
    <time dateTime={at} title={exactTime(at)} className="cell-stack tabular">
      {clock().format(date)}
      <span className="quiet">{day().format(date)}</span>
    </time>
  )
}

/** The columns of the list. */
export const callColumns: readonly Column<Call>[] = [
  {
    key: 'time',
    head: text.columns.time,
    isName: true,
    cell: ({ at }) => <ClockTime at={at} />,
  },
  {
    key: 'caller',
    head: text.columns.caller,
    cell: call => (
      <span className="cell-stack">
        {callerOf(call) === null ? <span className="call-none">{text.noAgent}</span> : <MiddleCut text={callerOf(call) ?? ''} max={24} />}
        <span className="quiet">
          <MiddleCut text={call.key_name ?? text.noKey} max={26} />
        </span>
      </span>
    ),
  },
  {
    key: 'model',
    head: text.columns.model,
    cell: call => (
      <span className="cell-stack">
        <MiddleCut text={call.model} max={28} />
        <span className="quiet">
          → {call.provider}
          {call.byok && ` · ${text.ownKey.toLowerCase()}`}
        </span>
      </span>
    ),
  },
  { key: 'kind', head: text.columns.kind, isOnCards: false, cell: ({ kind }) => <span className="quiet">{kindText(kind)}</span> },
  {
    key: 'tokens',
    head: text.columns.tokens,
    align: 'end',
    isOnCards: false,
    cell: call => <span title={`${count(call.prompt_tokens)} + ${count(call.completion_tokens)}`}>{count(call.tokens)}</span>,
  },
  { key: 'value', head: text.columns.value, align: 'end', cell: ({ value_inr: inr }) => <Money inr={inr} /> },
  {
    key: 'latency',
    head: text.columns.latency,
    align: 'end',
    isOnCards: false,
    cell: ({ latency_ms: ms, first_byte_ms: first }) => (
      <span className="nowrap" title={first === null ? undefined : text.firstByte(latencyText(first))}>
        {latencyText(ms)}
      </span>
    ),
  },
  { key: 'outcome', head: text.columns.outcome, cell: ({ outcome }) => <OutcomeWord outcome={outcome} /> },
]
