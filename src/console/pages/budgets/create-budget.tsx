import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { istDay, monthStart } from '../../ui/format/dates.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Combobox } from '../../ui/forms/combobox.tsx'
import { SelectField } from '../../ui/forms/field.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { BudgetForm } from './form/budget-form.tsx'
import type { BudgetPeriod } from './form/consequence.ts'
import { budgetScopes } from './search.ts'
import { text } from './text.ts'
import { boundOf, findBudget, findTargets, type Target, type TargetScope } from './use-budgets.ts'

/** Sets a budget of anything. Something that has one already shows it, so that nothing is replaced unseen. */
export function CreateBudget({ onClose }: { readonly onClose: () => void }) {
  const [scope, setScope] = useState<(typeof budgetScopes)[number]>('org')
  const [period, setPeriod] = useState<BudgetPeriod>('month')
  const [target, setTarget] = useState<Target | null>(null)
  return (
    <Dialog title={text.create} onClose={onClose} actions={<Button onClick={onClose}>{text.close}</Button>}>
      <SelectField
        label={text.scope}
        value={scope}
        onChange={event => {
          setScope(budgetScopes.find(one => one === event.target.value) ?? 'org')
          setTarget(null)
        }}
      >
        {budgetScopes.map(one => (
          <option key={one} value={one}>
            {text.scopes[one]}
          </option>
        ))}
      </SelectField>
      <SelectField label={text.period} value={period} onChange={event => setPeriod(periods.find(one => one === event.target.value) ?? 'month')}>
        {periods.map(one => (
          <option key={one} value={one}>
            {text.periods[one]}
          </option>
        ))}
      </SelectField>
      {scope === 'org' ? (
        <OrgBudget key={period} period={period} onSaved={onClose} />
      ) : (
        <TargetBudget key={scope} scope={scope} period={period} target={target} onTarget={setTarget} onSaved={onClose} />
      )}
    </Dialog>
  )
}

const periods = ['month', 'week', 'day', 'ever'] as const

interface TargetBudgetProps {
  readonly scope: TargetScope
  readonly period: BudgetPeriod
  readonly target: Target | null
  readonly onTarget: (target: Target | null) => void
  readonly onSaved: () => void
}

function TargetBudget({ scope, period, target, onTarget, onSaved }: TargetBudgetProps) {
  return (
    <>
      <Combobox
        label={text.which}
        placeholder={text.whichHint}
        name={`budget ${scope}`}
        value={target === null ? [] : [target]}
        onChange={([chosen]) => onTarget((chosen as Target | undefined) ?? null)}
        search={(words, signal) => findTargets(scope, words, signal)}
      />
      {target === null ? (
        <p className="quiet">{text.choose}</p>
      ) : period !== 'month' ? (
        <PeriodBudget key={`${target.value} ${period}`} scope={scope} id={target.value} name={target.label} period={period} onSaved={onSaved} />
      ) : (
        <BudgetForm
          key={target.value}
          budget={{ scope, id: Number(target.value), name: target.label, capInr: target.capInr, spentInr: target.spentInr }}
          onSaved={onSaved}
        />
      )}
    </>
  )
}

interface PeriodBudgetProps {
  readonly scope: (typeof budgetScopes)[number]
  /** Null for the organisation. */
  readonly id: string | null
  readonly name: string
  readonly period: BudgetPeriod
  readonly onSaved: () => void
}

/** A budget of a week, a day or of all time. It counts from the moment at which it is set, so a new one has spent nothing. */
function PeriodBudget({ scope, id, name, period, onSaved }: PeriodBudgetProps) {
  const known = useQuery({ queryKey: ['orgBudgets', 'one', scope, id, period], queryFn: ({ signal }) => findBudget(scope, id, period, signal) })
  return (
    <Loaded query={known}>
      {found => (
        <BudgetForm
          budget={found === null ? { scope, id: id === null ? null : Number(id), name, period, capInr: null, spentInr: 0 } : boundOf(found)}
          onSaved={onSaved}
        />
      )}
    </Loaded>
  )
}

function OrgBudget({ period, onSaved }: { readonly period: BudgetPeriod; readonly onSaved: () => void }) {
  const me = useMe()
  return period === 'month' ? <MonthOfOrg onSaved={onSaved} /> : <PeriodBudget scope="org" id={null} name={me.org.name} period={period} onSaved={onSaved} />
}

function MonthOfOrg({ onSaved }: { readonly onSaved: () => void }) {
  const me = useMe()
  const today = istDay(useNow())
  const budgets = useQuery(apiQuery('orgBudgets', { query: { scope: 'org', limit: 4 } }))
  const month = useQuery(apiQuery('activity', { query: { from: monthStart(today), to: today } }))
  return (
    <Loaded query={budgets}>
      {({ budgets: ofOrg }) => {
        const known = ofOrg.find(({ period }) => period === 'month')
        return known ? (
          <BudgetForm budget={boundOf(known)} onSaved={onSaved} />
        ) : (
          <Loaded query={month}>
            {({ totals }) => <BudgetForm budget={{ scope: 'org', id: null, name: me.org.name, capInr: null, spentInr: totals.value_inr }} onSaved={onSaved} />}
          </Loaded>
        )
      }}
    </Loaded>
  )
}
