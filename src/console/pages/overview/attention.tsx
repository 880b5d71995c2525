import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { text } from './text.ts'

const readAgainMs = 30_000
const nearShare = 0.8
const shownMax = 8

interface Finding {
  readonly id: string
  readonly tone: 'warn' | 'bad'
  readonly words: string
}

function findingsOf(health: ReplyOf<'health'>, budgets: ReplyOf<'orgBudgets'>['budgets']): Finding[] {
  const ofProcess: Finding[] = health.status === 'ok' ? [] : [{ id: 'process', tone: 'bad', words: text.process[health.status] }]
  const ofRoutes = health.routes
    .filter(({ available }) => !available)
    .map(({ model, provider }): Finding => ({ id: `${provider}/${model}`, tone: 'warn', words: text.circuit(model, provider) }))
  const ofBudgets = budgets.flatMap(({ scope, id, name, cap_inr: cap, spent_inr: spent }): Finding[] => {
    if (cap === null || spent < cap * nearShare) return []
    return [{ id: `${scope} ${id}`, tone: spent >= cap ? 'bad' : 'warn', words: spent >= cap ? text.budgetUsed(name) : text.budgetNear(name, spent / cap) }]
  })
  return [...ofProcess, ...ofBudgets, ...ofRoutes]
}

/** What a person should look at. A member does not see budgets of others, so these count for admins only. */
export function Attention() {
  const isAdmin = hasRole(useMe(), 'admin')
  const health = useQuery({ ...apiQuery('health'), refetchInterval: readAgainMs })
  const budgets = useQuery({ ...apiQuery('orgBudgets', { query: { limit: 50 } }), enabled: isAdmin })
  return (
    <Panel title={text.attention}>
      <Loaded query={health}>
        {data => {
          const findings = findingsOf(data, budgets.data?.budgets ?? [])
          if (findings.length === 0)
            return (
              <p className="finding finding-good">
                <Icon name="good" />
                {text.calm}
              </p>
            )
          return (
            <ul className="findings">
              {findings.slice(0, shownMax).map(({ id, tone, words }) => (
                <li key={id} className={`finding finding-${tone}`}>
                  <Icon name={tone} />
                  {words}
                </li>
              ))}
              {findings.length > shownMax && <li className="quiet">and {findings.length - shownMax} more</li>}
            </ul>
          )
        }}
      </Loaded>
    </Panel>
  )
}
