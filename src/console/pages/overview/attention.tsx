import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { budgetFindings, healthFindings, invitationFindings, keyFindings, webhookFindings } from './findings.ts'
import { text } from './text.ts'

const readAgainMs = 30_000
const shownMax = 8

/** What a person should look at. A member does not see budgets of others, webhooks and invitations, so these count for admins only. */
export function Attention() {
  const isAdmin = hasRole(useMe(), 'admin')
  const health = useQuery({ ...apiQuery('health'), refetchInterval: readAgainMs })
  const now = useNow()
  const budgets = useQuery({ ...apiQuery('orgBudgets', { query: { limit: 50 } }), enabled: isAdmin })
  const keys = useQuery({ ...apiQuery('listKeys', { query: { limit: 100 } }) })
  const webhooks = useQuery({ ...apiQuery('listWebhooks'), enabled: isAdmin })
  const members = useQuery({ ...apiQuery('listMembers'), enabled: isAdmin })
  return (
    <Panel title={text.attention}>
      <Loaded query={health}>
        {data => {
          const findings = [
            ...healthFindings(data),
            ...budgetFindings(budgets.data?.budgets ?? []),
            ...webhookFindings(webhooks.data?.webhooks ?? []),
            ...keyFindings(keys.data?.keys ?? [], now),
            ...invitationFindings(members.data?.pending?.length ?? 0),
          ]
          if (findings.length === 0)
            return (
              <p className="finding finding-good">
                <Icon name="good" />
                {text.calm}
              </p>
            )
          return (
            <ul className="findings">
              {findings.slice(0, shownMax).map(({ id, tone, words, to }) => (
                <li key={id} className={`finding finding-${tone}`}>
                  <Icon name={tone} />
                  {to === null ? (
                    words
                  ) : (
                    <Link to={to.path} search={to.search ?? {}}>
                      {words}
                    </Link>
                  )}
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
