import type { ReactNode } from 'react'
import { exactTime } from '../../ui/format/dates.ts'
import { count, exactMoney, withDisplay } from '../../ui/format/numbers.ts'
import { Copy } from '../../ui/forms/copy.tsx'
import { latencyText } from '../activity/latency.ts'
import { callerOf, kindText } from './calls-table.tsx'
import { text, type WholeCall } from './text.ts'

type Fact = readonly [label: string, value: ReactNode]

/** A count that most calls do not have. */
const some = (label: string, value: number): readonly Fact[] => (value > 0 ? [[label, count(value)]] : [])
const yesNo = (is: boolean): string => (is ? text.yes : text.no)

function factsOf(call: WholeCall): readonly (readonly Fact[])[] {
  const { facts } = text
  return [
    [
      [facts.time, exactTime(call.at)],
      [facts.latency, latencyText(call.latency_ms)],
      ...(call.first_byte_ms === null ? [] : [[facts.firstByte, latencyText(call.first_byte_ms)] as const]),
      [facts.status, String(call.status)],
      [facts.kind, kindText(call.kind)],
      [facts.streamed, yesNo(call.streamed)],
    ],
    [
      [facts.value, withDisplay(exactMoney(call.value_inr), call.value_inr)],
      [facts.cost, withDisplay(exactMoney(call.cost_inr), call.cost_inr)],
      [facts.prompt, count(call.prompt_tokens)],
      ...some(facts.cached, call.cached_tokens),
      ...some(facts.written, call.cache_write_tokens),
      [facts.completion, count(call.completion_tokens)],
      ...some(facts.reasoning, call.reasoning_tokens),
      ...some(facts.images, call.images),
      ...some(facts.audio, call.audio_seconds),
      ...some(facts.characters, call.characters),
      ...(call.estimated ? [[facts.estimated, text.estimate] as const] : []),
    ],
    [
      [facts.model, call.model],
      [facts.provider, call.provider],
      [facts.residency, text.residencies[call.residency] ?? call.residency],
      [text.ownKey, yesNo(call.byok)],
    ],
    [
      [facts.agent, callerOf(call) ?? text.none],
      [facts.key, call.key_name ?? text.noKey],
      [facts.person, call.member_name ?? (call.uid === null ? text.none : `Person ${call.uid}`)],
      [facts.workspace, call.workspace_name ?? (call.workspace_id === null ? text.none : `Workspace ${call.workspace_id}`)],
    ],
  ]
}

/** All that is kept of a call, in groups. */
export function CallFacts({ call }: { readonly call: WholeCall }) {
  return (
    <>
      {factsOf(call).map(group => (
        <dl key={group[0]?.[0]} className="facts call-facts">
          {group.map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      ))}
      <dl className="facts call-facts">
        <Id label={text.facts.request} id={call.request_id} />
        <Id label={text.facts.id} id={call.id} />
      </dl>
    </>
  )
}

function Id({ label, id }: { readonly label: string; readonly id: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd className="call-id">
        <code>{id}</code>
        <Copy text={id} label={text.copyId} />
      </dd>
    </div>
  )
}
