import { LinkButton } from '../ui/forms/button.tsx'
import type { IconName } from '../ui/icon.tsx'
import { Empty } from '../ui/layout/empty.tsx'
import { Page } from '../ui/layout/page.tsx'
import { Panel } from '../ui/layout/panel.tsx'
import { askSentence, useOwners } from './whom-to-ask.ts'

interface OnlyAdminsProps {
  readonly title: string
  readonly icon: IconName
  /** What owners and admins see here, as a sentence without its end. */
  readonly what: string
}

/** A page that the person may not see: it says who sees it and whom to ask, and asks the gateway for nothing of it. */
export function OnlyAdmins({ title, icon, what }: OnlyAdminsProps) {
  const owners = useOwners()
  return (
    <Page title={title}>
      <Panel>
        <Empty icon={icon} title={what} action={<LinkButton to="/">Overview</LinkButton>}>
          {askSentence(owners)}
        </Empty>
      </Panel>
    </Page>
  )
}
