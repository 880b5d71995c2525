import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { apiQuery } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { budgetFindings, type Finding, healthFindings, invitationFindings, keyFindings, webhookFindings } from './findings.ts'
import { text } from './text.ts'

const readAgainMs = 30_000
const shownMax = 8
/** A key that ends soon is found among this number of the newest keys. */
const readKeys = 50

/** What a person should look at. A member does not see budgets of others, webhooks and invitations, so these count for admins only. */
export function Attention() {
  const isAdmin = hasRole(useMe(), 'admin')
  const health = useQuery({ ...apiQuery('health'), refetchInterval: readAgainMs })
  const now = useNow()
  const budgetsIn = (state: 'warned' | 'blocked') => ({
    ...apiQuery('orgBudgets', { query: { state, limit: shownMax } }),
    enabled: isAdmin,
  })
  const blocked = useQuery(budgetsIn('blocked'))
  const warned = useQuery(budgetsIn('warned'))
  const unused = useQuery({ ...apiQuery('listKeys', { query: { state: 'notice', limit: shownMax } }) })
  const newest = useQuery({ ...apiQuery('listKeys', { query: { state: 'active', limit: readKeys } }) })
  const webhooks = useQuery({ ...apiQuery('listWebhooks'), enabled: isAdmin })
  const members = useQuery({ ...apiQuery('listMembers'), enabled: isAdmin })
  const reads = { health: [health], budgets: [blocked, warned], keys: [unused, newest], webhooks: [webhooks], members: [members] }
  const isPending = Object.values(reads).some(list => list.some(({ isLoading }) => isLoading))
  const unread = (Object.keys(reads) as (keyof typeof reads)[]).filter(name => reads[name].some(({ isError, data }) => isError && data === undefined))
  const again = (): void => {
    for (const read of Object.values(reads).flat()) if (read.isError) void read.refetch()
  }
  const findings = [
    ...(health.data ? healthFindings(health.data) : []),
    ...budgetFindings([...(blocked.data?.budgets ?? []), ...(warned.data?.budgets ?? [])]),
    ...webhookFindings(webhooks.data?.webhooks ?? []),
    ...keyFindings([...(unused.data?.keys ?? []), ...(newest.data?.keys ?? [])], now),
    ...invitationFindings(members.data?.pending?.length ?? 0),
  ].sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'))
  return (
    <Panel title={text.attention}>
      {isPending ? <Skeleton lines={3} /> : <Findings findings={findings} unread={unread.map(name => text.checked[name])} onRetry={again} />}
    </Panel>
  )
}

interface FindingsProps {
  readonly findings: readonly Finding[]
  /** What could not be read. The page does not say that all is well then. */
  readonly unread: readonly string[]
  readonly onRetry: () => void
}

function Findings({ findings, unread, onRetry }: FindingsProps) {
  if (findings.length === 0 && unread.length === 0)
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
              <Icon name="right" size={14} />
            </Link>
          )}
        </li>
      ))}
      {findings.length > shownMax && <li className="quiet">and {findings.length - shownMax} more</li>}
      {unread.length > 0 && (
        <li className="finding finding-warn">
          <Icon name="warn" />
          {text.attentionPart(unread)}
          <Button size="sm" look="ghost" onClick={onRetry}>
            Try again
          </Button>
        </li>
      )}
    </ul>
  )
}
