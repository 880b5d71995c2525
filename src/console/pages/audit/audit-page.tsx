import { getRouteApi } from '@tanstack/react-router'
import { hasRole, useMe } from '../../app/me.tsx'
import { OnlyAdmins } from '../../app/only-admins.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import './audit.css'
import type { AuditSearch } from './search.ts'
import { text } from './text.ts'
import { TrailTab } from './trail/trail-tab.tsx'
import { VerifyTab } from './verify/verify-tab.tsx'

const route = getRouteApi('/audit')
const tabs = ['trail', 'verify'] as const

/** The audit trail, and the check of the signed records of tools. */
export function AuditPage() {
  const me = useMe()
  const search = route.useSearch()
  const navigate = route.useNavigate()
  if (!hasRole(me, 'admin') && !me.capabilities.includes('audit:view')) return <OnlyAdmins title={text.title} icon="list" what={text.only} />
  const show = (next: AuditSearch): void => void navigate({ search: next, replace: true, resetScroll: false })
  const { tab = 'trail' } = search
  return (
    <Page title={text.title} intro={text.intro}>
      <Tabs
        label={text.title}
        value={tab}
        onChange={next => show(next === 'verify' ? { tab: 'verify' } : {})}
        tabs={tabs.map(id => ({ id, label: text.tabs[id] }))}
      >
        <div className="audit-tab">{tab === 'trail' ? <TrailTab search={search} onShow={show} /> : <VerifyTab />}</div>
      </Tabs>
    </Page>
  )
}
