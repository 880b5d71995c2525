import { useMe } from '../../app/me.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { DoctorPanel } from './doctor-panel.tsx'
import './health.css'
import { ProviderKeysPanel } from './keys-panel.tsx'
import { MaintenancePanel } from './maintenance-panel.tsx'
import { OrganisationsPanel } from './organisations-panel.tsx'
import { BacklogPanel, OutboxPanel } from './queues.tsx'
import { text } from './text.ts'

/** The state of the installation, for its operators. */
export function HealthPage() {
  const me = useMe()
  if (!me.is_operator)
    return (
      <Page title={text.title}>
        <Panel>
          <Empty icon="shield" title={text.notOperatorTitle}>
            {text.notOperator}
          </Empty>
        </Panel>
      </Page>
    )
  return (
    <Page title={text.title} intro={text.intro}>
      <DoctorPanel />
      <div className="health-columns">
        <ProviderKeysPanel />
        <MaintenancePanel />
        <OutboxPanel />
        <BacklogPanel />
      </div>
      <OrganisationsPanel />
    </Page>
  )
}
