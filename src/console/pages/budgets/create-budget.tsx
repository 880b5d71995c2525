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
import { budgetScopes } from './search.ts'
import { text } from './text.ts'
import { boundOf, findTargets, type Target, type TargetScope } from './use-budgets.ts'

/** Sets a budget of anything. Something that has one already shows it, so that nothing is replaced unseen. */
export function CreateBudget({ onClose }: { readonly onClose: () => void }) {
  const [scope, setScope] = useState<(typeof budgetScopes)[number]>('org')
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
      {scope === 'org' ? <OrgBudget onSaved={onClose} /> : <TargetBudget key={scope} scope={scope} target={target} onTarget={setTarget} onSaved={onClose} />}
    </Dialog>
  )
}

interface TargetBudgetProps {
  readonly scope: TargetScope
  readonly target: Target | null
  readonly onTarget: (target: Target | null) => void
  readonly onSaved: () => void
}

function TargetBudget({ scope, target, onTarget, onSaved }: TargetBudgetProps) {
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

function OrgBudget({ onSaved }: { readonly onSaved: () => void }) {
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
