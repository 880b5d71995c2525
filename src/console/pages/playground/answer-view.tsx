import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { Copy } from '../../ui/forms/copy.tsx'
import { Icon } from '../../ui/icon.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { AnswerText } from './answer-text.tsx'
import { RouteReasons } from './route-reasons.tsx'
import type { Answer } from './run/conversation.ts'
import { playgroundAgent } from './run/token.ts'
import { duration, text } from './text.ts'

/** One answer: what it says, what it cost, and why its call took its route. */
export function AnswerView({ answer, name }: { readonly answer: Answer; readonly name: string }) {
  const { body, state, error, facts } = answer
  const isRunning = state === 'running'
  return (
    <article className="play-answer" aria-label={text.answerOf(body.model)} aria-busy={isRunning}>
      <header className="play-answer-head">
        <span className="play-model">
          {body.model}
          {facts.servedModel !== null && facts.servedModel !== body.model && <span className="quiet"> → {facts.servedModel}</span>}
        </span>
        {answer.text !== '' && !isRunning && <Copy text={answer.text} label="Copy the answer" />}
      </header>
      {answer.thought !== '' && (
        <details className="play-thought" open={isRunning && answer.text === ''}>
          <summary>{text.thinking}</summary>
          <p>{answer.thought}</p>
        </details>
      )}
      {answer.text !== '' && <AnswerText text={answer.text} />}
      {isRunning && answer.text === '' && answer.thought === '' && (
        <p className="play-waiting quiet">
          <span className="spinner" aria-hidden="true" />
          {text.waiting}
        </p>
      )}
      {state === 'done' && answer.text === '' && <p className="quiet">{text.nothing}</p>}
      {state === 'stopped' && (
        <p className="play-stopped">
          <Icon name="pause" size={14} />
          {text.stopped}
        </p>
      )}
      {error !== null && (
        <div className="stack-3">
          <InlineError error={apiErrorOf(error)} />
          <Fix code={error.code} />
        </div>
      )}
      {!isRunning && <Facts answer={answer} />}
      {!isRunning && <Why answer={answer} name={name} />}
      <p className="visually-hidden" role="status">
        {state === 'done' && text.finished(body.model)}
      </p>
    </article>
  )
}

/** What a person does about an error. Other errors say it themselves. */
function Fix({ code }: { readonly code: string }) {
  const agent = playgroundAgent()
  if (['no_route', 'provider_unavailable_billing', 'unavailable'].includes(code))
    return (
      <p>
        <Link to="/start" search={{ step: 'provider' }}>
          {text.fixProvider}
        </Link>
      </p>
    )
  if (agent !== null && ['budget_exceeded', 'agent_budget_exceeded', 'agent_paused', 'model_not_allowed', 'call_cap_exceeded'].includes(code))
    return (
      <p>
        <Link to="/agents/$id" params={{ id: String(agent) }}>
          {text.fixBudget}
        </Link>
      </p>
    )
  return null
}

function Facts({ answer: { facts } }: { readonly answer: Answer }) {
  const { provider, totalMs, firstMs, promptTokens, completionTokens, costInr, valueInr, budgetLeftInr, requestId } = facts
  const rows: readonly (readonly [label: string, value: ReactNode])[] = [
    ...(provider ? [[text.facts.provider, provider] as const] : []),
    ...(totalMs === null ? [] : [[text.facts.time, duration(totalMs)] as const]),
    ...(firstMs === null ? [] : [[text.facts.first, duration(firstMs)] as const]),
    ...(promptTokens === null || completionTokens === null ? [] : [[text.facts.tokens, text.tokens(promptTokens, completionTokens)] as const]),
    ...(costInr === null
      ? []
      : [
          [
            text.facts.cost,
            <span key="cost" title={text.exactCost(costInr)}>
              {text.cost(costInr, valueInr)}
            </span>,
          ] as const,
        ]),
    ...(budgetLeftInr === null ? [] : [[text.facts.left, text.cost(budgetLeftInr, null)] as const]),
  ]
  if (requestId === null) return null
  return (
    <dl className="play-facts">
      {rows.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
      <div>
        <dt className="visually-hidden">Call</dt>
        <dd>
          <Link to="/calls" search={{ call: requestId }}>
            {text.call}
          </Link>
        </dd>
      </div>
    </dl>
  )
}

/** The reasons are read when a person opens them. */
function Why({ answer: { body }, name }: { readonly answer: Answer; readonly name: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="play-why-fold" onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="route" size={14} />
        {text.why}
      </summary>
      {isOpen && <RouteReasons body={body} name={name} />}
    </details>
  )
}
