import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { useNow } from '../../../ui/data/time.tsx'
import { shortMoney } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Check } from '../../../ui/forms/check.tsx'
import { choiceOf, limitOf, MoneyField } from '../../../ui/forms/money-field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import './budget-form.css'
import { type BoundBudget, type Consequence, consequenceOf } from './consequence.ts'
import { formText as text } from './form-text.ts'

interface SavedBudget {
  readonly capInr: number | null
  readonly isStrict: boolean | undefined
}

const savedOf = ({ capInr, isStrict }: BoundBudget): SavedBudget => ({ capInr, isStrict })
const isSame = (a: SavedBudget, b: SavedBudget): boolean => a.capInr === b.capInr && a.isStrict === b.isStrict

/** Reads again everything that shows a budget. */
export const budgetsChanged = (): Promise<void> => invalidate('orgBudgets', 'listMembers', 'listWorkspaces', 'listKeys', 'listAgentsConsole', 'getAgentConsole')

/**
 * Sets a budget, and says before what the change does. What was typed stays while the page reads again. When somebody else changes the budget meanwhile, the
 * form shows both amounts. Decision 0771 says why.
 */
export function BudgetForm({ budget, onSaved }: { readonly budget: BoundBudget; readonly onSaved?: () => void }) {
  const now = useNow()
  const { period = 'month' } = budget
  const given = savedOf(budget)
  const [base, setBase] = useState(given)
  const [choice, setChoice] = useState(() => choiceOf(given.capInr))
  const [isStrict, setStrict] = useState(given.isStrict)
  const limit = limitOf(choice)
  const isTouched = limit !== base.capInr || isStrict !== base.isStrict
  const adopt = (saved: SavedBudget): void => {
    setBase(saved)
    setChoice(choiceOf(saved.capInr))
    setStrict(saved.isStrict)
  }
  // A form that nobody has touched follows what the page reads.
  if (!isTouched && !isSame(base, given)) adopt(given)
  const save = useMutation({
    mutationFn: (capInr: number | null) =>
      api('setOrgBudget', {
        body: {
          scope: budget.scope,
          ...(budget.id === null ? {} : { target_id: budget.id }),
          ...(period === 'month' ? { monthly_budget_inr: capInr } : { period, budget_inr: capInr }),
          ...(isStrict === base.isStrict || isStrict === undefined ? {} : { strict: isStrict }),
        },
      }),
    onSuccess: async ({ budget: saved }) => {
      adopt({ capInr: saved.cap_inr, isStrict: base.isStrict === undefined ? undefined : saved.strict })
      await budgetsChanged()
      toast(saved.cap_inr === null ? text.lifted(budget.name, period) : text.saved(budget.name, saved.cap_inr, period))
      onSaved?.()
    },
  })
  const isOvertaken = isTouched && !save.isPending && base.capInr !== given.capInr
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isTouched && limit !== undefined && !save.isPending) save.mutate(limit)
      }}
    >
      <MoneyField label={text.amount(period)} value={choice} onChange={setChoice} />
      {limit !== undefined && <ConsequenceLine {...consequenceOf(budget, limit, now)} />}
      {isStrict !== undefined && limit !== null && <Check label={text.strict} hint={text.strictHint} isChecked={isStrict} onChange={setStrict} />}
      {isOvertaken && (
        <div className="budget-overtaken" role="status">
          <p>{text.overtaken(amountText(base.capInr), amountText(given.capInr))}</p>
          <Button size="sm" onClick={() => adopt(given)}>
            {text.takeTheirs(amountText(given.capInr))}
          </Button>
        </div>
      )}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isTouched || limit === undefined}>
          {text.save}
        </Button>
      </div>
    </form>
  )
}

const amountText = (inr: number | null): string => (inr === null ? 'no limit' : shortMoney(inr))

/** The sentence that says what a limit does. A screen reader says it when it changes. */
export function ConsequenceLine({ tone, text: words }: Consequence) {
  return (
    <p className={`budget-consequence budget-consequence-${tone}`} role="status">
      <Icon name={tone === 'warn' ? 'warn' : 'info'} size={14} />
      <span>{words}</span>
    </p>
  )
}
