import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Money } from '../../ui/data/money.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { type ConnectAgent, curlCall } from '../connect/snippets.ts'
import { StepFrame } from './step-frame.tsx'
import { text } from './text.ts'
import type { Call } from './use-first-call.ts'

interface CallStepProps {
  readonly agent: ConnectAgent | null
  /** The first call, when it came. */
  readonly call: Call | null
  readonly onBack: () => void
  readonly onDone: () => void
}

/** The last step: it waits, and turns when the first call arrives. */
export function CallStep({ agent, call, onBack, onDone }: CallStepProps) {
  if (call?.outcome === 'ok') return <Arrived key="arrived" agent={agent} call={call} onDone={onDone} />
  return (
    <StepFrame
      step="call"
      title={text.callTitle}
      about={text.callAbout(agent?.name ?? null)}
      actions={
        <>
          <Button onClick={onBack}>{text.back}</Button>
          <LinkButton look="ghost" to="/">
            {text.leave}
          </LinkButton>
        </>
      }
    >
      <p className="start-listening" role="status">
        <span className="start-pulse" aria-hidden="true" />
        {text.listening}
      </p>
      {call !== null && (
        <div className="start-failed" role="alert">
          <Icon name="warn" />
          <div>
            <p className="start-failed-title">{text.failedTitle}</p>
            <p>{text.failed(call.model, call.status)}</p>
            <LinkButton size="sm" to="/calls" search={{ call: call.request_id }}>
              {text.openCall}
            </LinkButton>
          </div>
        </div>
      )}
      <Code text={curlCall(location.origin, agent)} label={text.try} />
    </StepFrame>
  )
}

function Arrived({ agent, call, onDone }: { readonly agent: ConnectAgent | null; readonly call: Call; readonly onDone: () => void }) {
  const facts = [
    [text.facts.model, call.model],
    [text.facts.provider, call.provider],
    [text.facts.cost, <Money key="cost" inr={call.cost_inr} />],
    ...(call.value_inr === call.cost_inr ? [] : [[text.facts.value, <Money key="value" inr={call.value_inr} />] as const]),
    [text.facts.tokens, count(call.tokens)],
    [text.facts.time, `${count(call.latency_ms)} ms`],
  ] as const
  return (
    <StepFrame
      step="call"
      title={text.arrivedTitle}
      about={
        <span className="start-arrived" role="status">
          <Icon name="good" />
          {text.arrived(call.model, call.provider)}
        </span>
      }
      actions={
        <>
          {agent === null ? (
            <LinkButton look="primary" to="/">
              {text.overview}
            </LinkButton>
          ) : (
            <LinkButton look="primary" to={`/agents/${agent.id}`}>
              {text.openAgent}
            </LinkButton>
          )}
          <LinkButton to="/calls" search={{ call: call.request_id }}>
            {text.openCall}
          </LinkButton>
          <Button look="ghost" onClick={onDone}>
            {text.startOver}
          </Button>
        </>
      }
    >
      <Facts facts={facts} className="start-facts" />
    </StepFrame>
  )
}
