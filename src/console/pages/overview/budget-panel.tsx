import { useQuery } from '@tanstack/react-query'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { BudgetBar } from '../../ui/charts/budget-bar.tsx'
import { Tag } from '../../ui/data/status.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { text } from './text.ts'

const shownMax = 6
const nearMax = 8

/** The budgets that are used up or nearly so, then the widest ones. Only admins see budgets of the organisation, so a member gets no panel. */
export function BudgetPanel() {
  const isAdmin = hasRole(useMe(), 'admin')
  // The same reads as those of what needs attention, so that they cost no request.
  const near = (state: 'blocked' | 'warned') => ({ ...apiQuery('orgBudgets', { query: { state, limit: nearMax } }), enabled: isAdmin })
  const [blocked, warned] = [useQuery(near('blocked')), useQuery(near('warned'))]
  const budgets = useQuery({ ...apiQuery('orgBudgets', { query: { limit: 50 } }), enabled: isAdmin })
  if (!isAdmin) return null
  return (
    <Panel title={text.budgets} note={text.budgetsNote}>
      <Loaded query={budgets}>
        {data => {
          const all = [...(blocked.data?.budgets ?? []), ...(warned.data?.budgets ?? []), ...data.budgets]
          const capped = [...new Map(all.map(budget => [`${budget.scope} ${budget.id} ${budget.period}`, budget])).values()].filter(
            ({ cap_inr: cap }) => cap !== null,
          )
          if (capped.length === 0) return <p className="quiet">No budget is set. Keys, agents and the organisation spend without a limit.</p>
          return (
            <ul className="budgets">
              {capped.slice(0, shownMax).map(budget => (
                <li key={`${budget.scope} ${budget.id} ${budget.period}`}>
                  <p className="budgets-name">
                    <span>{budget.name}</span>
                    <Tag>{budget.scope}</Tag>
                    {budget.strict && <Tag>strict</Tag>}
                  </p>
                  <BudgetBar capInr={budget.cap_inr} spentInr={budget.spent_inr} heldInr={budget.held_inr} inDoubtInr={budget.in_doubt_inr} />
                </li>
              ))}
            </ul>
          )
        }}
      </Loaded>
    </Panel>
  )
}
