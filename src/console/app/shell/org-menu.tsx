import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { leaving } from '../../api/connection.ts'
import { apiQuery, queryClient } from '../../api/queries.ts'
import { Icon } from '../../ui/icon.tsx'
import { Menu, MenuHeading, MenuItem } from '../../ui/overlays/menu.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import type { Me } from '../me.tsx'
import { tellTabs } from '../session/session-news.ts'

/** The organisation of the session, and the others of the person. Moving loads the console again, so that nothing of one organisation stays. */
export function OrgMenu({ me }: { readonly me: Me }) {
  const orgs = useQuery(apiQuery('listOrgs'))
  const move = useMutation({
    mutationFn: (orgId: number) => {
      leaving.set(true)
      return api('switchOrg', { body: { org_id: orgId } })
    },
    onSuccess: () => {
      queryClient.clear()
      tellTabs('moved')
      location.assign('/console')
    },
    onError: error => {
      leaving.set(false)
      toast(apiErrorOf(error).message, 'bad')
    },
  })
  return (
    <Menu
      label={`Organisation: ${me.org.name}`}
      align="start"
      triggerClass="org-button"
      trigger={
        <>
          <span className="org-mark" aria-hidden="true">
            {[...me.org.name][0]?.toUpperCase()}
          </span>
          <span className="org-name">{me.org.name}</span>
          <Icon name="upDown" />
        </>
      }
    >
      <MenuHeading>Organisations</MenuHeading>
      {(orgs.data?.orgs ?? [{ id: me.org.id, name: me.org.name, role: me.role }]).map(({ id, name, role }) => (
        <MenuItem key={id} isChecked={id === me.org.id} onClick={() => id !== me.org.id && move.mutate(id)}>
          {name} <span className="quiet">{role}</span>
        </MenuItem>
      ))}
    </Menu>
  )
}
