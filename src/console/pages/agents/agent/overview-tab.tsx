import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { BudgetBar } from '../../../ui/charts/budget-bar.tsx'
import { Money } from '../../../ui/data/money.tsx'
import { useNow } from '../../../ui/data/time.tsx'
import { addDays, daysInMonth, istDay, monthStart } from '../../../ui/format/dates.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { choiceOf, limitOf, MoneyField } from '../../../ui/forms/money-field.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import type { TabProps } from '../agent-tabs.ts'
import { type AgentFamily, agentsChanged } from '../use-agents.ts'
import { LastCalls } from './calls-tab.tsx'
import { SpendChart } from './spend-chart.tsx'
import { rulesInWords, text } from './text.ts'

/** What the agent spends, what it may do, and what it did last. */
export function OverviewTab({ agent, isMine }: TabProps) {
  return (
    <>
      <div className="agent-columns">
        <Budget agent={agent} isMine={isMine} />
        <Panel
          title={text.rules}
          note={text.rulesNote}
          actions={
            isMine && (
              <Link to="/agents/$id" params={{ id: String(agent.id) }} search={{ tab: 'rules' }} className="button button-plain button-sm">
                {text.changeRules}
              </Link>
            )
          }
        >
          <ul className="rule-words">
            {rulesInWords(agent).map(words => (
              <li key={words}>
                <Icon name="check" size={14} />
                {words}
              </li>
            ))}
          </ul>
        </Panel>
      </div>
      <SpendChart agentId={agent.id} />
      <LastCalls agent={agent} isMine={isMine} />
    </>
  )
}

const dayMs = 86_400_000
const istOffsetMs = 5.5 * 3_600_000

/** Returns what the month comes to when its days are like those until now. Null on its first day, which says too little. */
function forecastOf(spentInr: number, nowMs: number): number | null {
  const today = istDay(nowMs)
  const passed = Number(today.slice(8)) - 1 + ((nowMs + istOffsetMs) % dayMs) / dayMs
  return passed < 1 || spentInr === 0 ? null : (spentInr / passed) * daysInMonth(today)
}

function Budget({ agent, isMine }: TabProps) {
  const now = useNow()
  const [isOpen, setOpen] = useState(false)
  const { monthly_budget_inr: cap, spend_month_inr: spent, held_inr: held, in_doubt_inr: inDoubt } = agent
  const start = monthStart(istDay(now))
  const forecast = forecastOf(spent, now)
  const parts = [
    { label: text.spent, inr: spent, swatch: 'part-spent' },
    { label: text.held, inr: held, swatch: 'part-held', help: text.heldHelp },
    { label: text.inDoubt, inr: inDoubt, swatch: 'part-doubt', help: text.inDoubtHelp },
    { label: text.left, inr: cap === null ? null : Math.max(0, cap - spent - held - inDoubt), swatch: 'part-left' },
  ]
  return (
    <Panel
      title={text.budget}
      note={text.resets(addDays(start, daysInMonth(start)))}
      actions={
        isMine && (
          <Button size="sm" onClick={() => setOpen(true)}>
            {text.setBudget}
          </Button>
        )
      }
    >
      <div className="agent-budget">
        <BudgetBar capInr={cap} spentInr={spent} heldInr={held} inDoubtInr={inDoubt} />
        <dl className="budget-parts">
          {parts.map(({ label, inr, swatch, help }) => (
            <div key={label} title={help}>
              <dt>
                <span className={`part ${swatch}`} />
                {label}
              </dt>
              <dd>{inr === null ? text.noLimit : <Money inr={inr} isShort />}</dd>
            </div>
          ))}
        </dl>
        {forecast !== null && <p className="quiet budget-forecast">{text.forecast(forecast, cap)}</p>}
      </div>
      {isOpen && <SetBudget agent={agent} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function SetBudget({ agent, onClose }: { readonly agent: AgentFamily; readonly onClose: () => void }) {
  const [budget, setBudget] = useState(() => choiceOf(agent.monthly_budget_inr))
  const limit = limitOf(budget)
  const save = useMutation({
    mutationFn: (inr: number | null) => api('setAgentBudgetConsole', { path: { id: agent.id }, body: { monthly_budget_inr: inr } }),
    onSuccess: async () => {
      await agentsChanged()
      toast(text.savedToast)
      onClose()
    },
  })
  const isChanged = limit !== undefined && limit !== agent.monthly_budget_inr
  return (
    <Dialog
      title={text.budgetTitle}
      width="sm"
      onClose={onClose}
      onSubmit={() => isChanged && save.mutate(limit)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isChanged}>
            {text.save}
          </Button>
        </>
      }
    >
      <MoneyField label={text.budgetLabel} hint={text.budgetHint} value={budget} onChange={setBudget} />
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
    </Dialog>
  )
}
