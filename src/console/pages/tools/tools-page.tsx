import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { Menu, MenuItem } from '../../ui/overlays/menu.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { RegisterServer } from './register/register-server.tsx'
import { type ToolsSearch, type ToolsTab, toolsTabs } from './search.ts'
import { CallsTab } from './tabs/calls-tab.tsx'
import { ConnectionsTab } from './tabs/connections-tab.tsx'
import { ServersTab } from './tabs/servers-tab.tsx'
import { text } from './text.ts'
import './tools.css'
import { toolsChanged } from './use-tools.ts'

const route = getRouteApi('/tools')

/** The MCP servers of the organisation, the connections of the person, and the calls of tools. */
export function ToolsPage() {
  const search = route.useSearch()
  const { tab = 'servers', new: isNew } = search
  const navigate = route.useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const [isStopping, setStopping] = useState(false)
  const show = useCallback((next: ToolsSearch) => void navigate({ search: next, replace: true, resetScroll: false }), [navigate])
  const choose = (next: string): void => show(next === 'servers' ? {} : { tab: next as Exclude<ToolsTab, 'servers'> })
  const register = useCallback(() => void navigate({ search: { new: true }, resetScroll: false }), [navigate])
  usePageCommands(
    useMemo(
      () => (isAdmin ? [{ id: 'register-server', label: text.register, group: text.title, icon: 'plus' as const, keys: 'n', run: register }] : []),
      [isAdmin, register],
    ),
  )
  const registerButton = isAdmin && (
    <Button look="primary" icon="plus" onClick={register}>
      {text.register}
    </Button>
  )
  return (
    <Page
      title={text.title}
      intro={isAdmin ? text.intro : `${text.intro} ${text.introMember(owners)}`}
      actions={
        isAdmin && (
          <>
            {registerButton}
            <Menu label={text.more} trigger={<Icon name="more" />}>
              <MenuItem icon="stop" isDanger onClick={() => setStopping(true)}>
                {text.allOff}…
              </MenuItem>
            </Menu>
          </>
        )
      }
    >
      <Tabs label={text.title} value={tab} onChange={choose} tabs={toolsTabs.map(id => ({ id, label: text.tabs[id] }))}>
        <div className="tools-tab">
          {tab === 'servers' && <ServersTab registerButton={registerButton} />}
          {tab === 'connections' && <ConnectionsTab />}
          {tab === 'calls' && <CallsTab search={search} onShow={show} />}
        </div>
      </Tabs>
      {isNew && isAdmin && <RegisterServer onClose={() => show({})} />}
      {isStopping && <AllOff onClose={() => setStopping(false)} />}
    </Page>
  )
}

function AllOff({ onClose }: { readonly onClose: () => void }) {
  const stop = useMutation({
    mutationFn: () => api('switchToolServersOff'),
    onSuccess: async ({ switched_off: many }) => {
      await toolsChanged()
      toast(text.allOffDone(many))
      onClose()
    },
  })
  return (
    <Confirm
      title={text.allOff}
      act={text.allOff}
      isBusy={stop.isPending}
      error={stop.error && apiErrorOf(stop.error)}
      onConfirm={() => stop.mutate()}
      onClose={onClose}
    >
      <p>{text.allOffAbout}</p>
    </Confirm>
  )
}
