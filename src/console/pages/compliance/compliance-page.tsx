import { getRouteApi } from '@tanstack/react-router'
import { hasRole, useMe } from '../../app/me.tsx'
import { OnlyAdmins } from '../../app/only-admins.tsx'
import { Choice } from '../../ui/forms/list-filters.tsx'
import { Page } from '../../ui/layout/page.tsx'
import './compliance.css'
import { DpiaPanels } from './dpia-panel.tsx'
import { PosturePanel } from './posture-panel.tsx'
import { RetentionPanel } from './retention-panel.tsx'
import { defaultWindow, windows } from './search.ts'
import { text } from './text.ts'

const route = getRouteApi('/compliance')
const auditors = ['usage:org:view', 'cost:org:view', 'audit:view']

/** Where calls were served, what is kept, and the documents for auditors. */
export function CompliancePage() {
  const me = useMe()
  const { window = defaultWindow } = route.useSearch()
  const navigate = route.useNavigate()
  if (!hasRole(me, 'admin') && !auditors.some(name => me.capabilities.includes(name))) return <OnlyAdmins title={text.title} icon="shield" what={text.only} />
  const choose = (chosen: string): void => {
    const next = windows.find(one => one === chosen) ?? defaultWindow
    void navigate({ search: next === defaultWindow ? {} : { window: next }, replace: true, resetScroll: false })
  }
  return (
    <Page
      title={text.title}
      intro={text.intro}
      actions={
        <Choice label={text.window} value={window} onChange={choose}>
          {windows.map(one => (
            <option key={one} value={one}>
              {text.windows[one]}
            </option>
          ))}
        </Choice>
      }
    >
      <div className="compliance-columns">
        <PosturePanel window={window} />
        <RetentionPanel key={me.org.data_retention_days} />
      </div>
      <DpiaPanels window={window} />
    </Page>
  )
}
