import type { ReactNode } from 'react'
import { curlOf } from '../../api/call.ts'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Money } from '../../ui/data/money.tsx'
import { Status } from '../../ui/data/status.tsx'
import { dayText, exactTime, istDay } from '../../ui/format/dates.ts'
import { LinkButton } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { BudgetForm } from './form/budget-form.tsx'
import type { Budget } from './search.ts'
import { stateWords, text } from './text.ts'
import { boundOf } from './use-budgets.ts'

interface BudgetPeekProps {
  /** Null when the budget is not among those that were read. */
  readonly budget: Budget | null
  readonly onClose: () => void
}

/** The page of what a budget binds. The organisation has none. */
function linkOf({ scope, id }: Budget): { readonly to: string; readonly search?: object } | null {
  switch (scope) {
    case 'org':
    case 'team':
      return null
    case 'workspace':
      return { to: '/workspaces', search: { workspace: Number(id) } }
    case 'member':
      return { to: '/members', search: { member: Number(id) } }
    case 'key':
      return { to: '/keys', search: { key: Number(id) } }
    case 'agent':
      return { to: `/agents/${id}` }
  }
}

/** Writes when the period of a budget ends. */
function resetText({ resets_at: at }: Pick<Budget, 'resets_at'>): string {
  if (at === null) return text.never
  return at.endsWith('T18:30:00.000Z') ? `${dayText(istDay(Date.parse(at)))}, midnight in India` : exactTime(at)
}

/** One budget beside the list: its figures, and the form that changes it. */
export function BudgetPeek({ budget, onClose }: BudgetPeekProps) {
  if (budget === null)
    return (
      <Peek title="Budget" onClose={onClose}>
        <p className="quiet">{text.notLoaded}</p>
      </Peek>
    )
  const { scope, id, period, name, cap_inr: cap, spent_inr: spent, held_inr: held, in_doubt_inr: inDoubt, remaining_inr: left } = budget
  const { increase_inr: more, increase_until: until } = budget
  const { tone, name: state, means } = stateWords[budget.state]
  const link = linkOf(budget)
  const facts: readonly (readonly [string, ReactNode])[] = [
    [text.spent, <Money key="spent" inr={spent} />],
    [text.held, <Money key="held" inr={held} />],
    [text.inDoubt, <Money key="doubt" inr={inDoubt} />],
    [text.left, left === null ? 'No limit' : <Money key="left" inr={left} />],
    ...(more === undefined || until === undefined ? [] : [[text.increase, text.increaseUntil(more, exactTime(until))] as const]),
    [text.period, text.periods[period]],
    [text.resets, resetText(budget)],
    [text.strict, budget.strict ? text.strictOn : text.strictOff],
  ]
  return (
    <Peek
      title={name}
      subtitle={`${text.scopes[scope]} · id ${id}`}
      onClose={onClose}
      actions={
        link && (
          <LinkButton icon="right" to={link.to} {...(link.search === undefined ? {} : { search: link.search })}>
            {text.open[scope]}
          </LinkButton>
        )
      }
    >
      <div className="stack-3">
        <p className="budget-state">
          <Status tone={tone}>{state}</Status>
          <span className="quiet">{means}</span>
        </p>
        <BudgetBar capInr={cap === null ? null : cap + (more ?? 0)} spentInr={spent} heldInr={held} inDoubtInr={inDoubt} />
        <Facts facts={facts} />
      </div>
      <section className="stack-3" aria-label={text.change}>
        <h3 className="budget-heading">{text.change}</h3>
        <BudgetForm budget={boundOf(budget)} />
      </section>
      <Fold title="Show as curl">
        <Code
          text={curlOf('setOrgBudget', {
            body: { scope, target_id: id, ...(period === 'month' ? { monthly_budget_inr: cap } : { period, budget_inr: cap }) },
          })}
        />
      </Fold>
    </Peek>
  )
}
