import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, type MoneyChoice, MoneyField } from '../../ui/forms/money-field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { changesOf, emptyRules, isReady, RuleFields } from './rule-fields.tsx'
import { text } from './text.ts'
import { type Agent, agentsChanged, type MadeAgent, makeAgent, type NewAgent } from './use-agents.ts'

interface CreateAgentProps {
  /** The agent above. Left out: an agent of its own. */
  readonly parent?: Pick<Agent, 'id' | 'name' | 'monthly_budget_inr'>
  readonly onClose: () => void
  readonly onMade: (agent: Agent) => void
}

/** The form for a new agent: name and budget, and the rules folded. */
export function CreateAgent({ parent, onClose, onMade }: CreateAgentProps) {
  const [name, setName] = useState('')
  const needsBudget = parent !== undefined && parent.monthly_budget_inr !== null
  const [budget, setBudget] = useState<MoneyChoice>(needsBudget ? { kind: 'amount', text: '' } : choiceOf(null))
  const [rules, setRules] = useState(emptyRules)
  const make = useMutation<MadeAgent, Error, NewAgent>({
    mutationFn: makeAgent,
    onSuccess: async ({ agent, budgetError }) => {
      await agentsChanged()
      toast(budgetError === null ? text.created(agent.name) : text.createdPartly(agent.name, budgetError), budgetError === null ? 'good' : 'bad')
      onMade(agent)
    },
  })
  const limit = limitOf(budget)
  const isWhole = name.trim() !== '' && limit !== undefined && isReady(rules, emptyRules)
  const error = make.error === null ? null : apiErrorOf(make.error)
  const isNameWrong = error !== null && (error.message === text.nameTaken || ['bad_name', 'agent_name_taken'].includes(error.code))
  const onSubmit = (): void => {
    if (limit === undefined || !isWhole || make.isPending) return
    make.mutate({ name: name.trim(), budgetInr: limit, rules: changesOf(rules, emptyRules), ...(parent === undefined ? {} : { parentId: parent.id }) })
  }
  return (
    <Dialog
      title={parent === undefined ? text.create : text.childOf(parent.name)}
      onClose={onClose}
      onSubmit={onSubmit}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={make.isPending} disabled={!isWhole}>
            {text.createAct}
          </Button>
        </>
      }
    >
      {parent !== undefined && <p className="quiet">{text.childHint}</p>}
      <TextField
        label={text.name}
        placeholder={text.namePlaceholder}
        maxLength={100}
        value={name}
        error={isNameWrong ? error.message : null}
        onChange={event => setName(event.target.value)}
      />
      <MoneyField label={text.budget} hint={needsBudget ? text.childBudgetHint : text.budgetHint} value={budget} onChange={setBudget} />
      <Fold title={text.advanced} hint={text.advancedHint}>
        <RuleFields value={rules} onChange={setRules} hasRuns={parent === undefined} />
      </Fold>
      {error && !isNameWrong && <InlineError error={error} />}
    </Dialog>
  )
}
