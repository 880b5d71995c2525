import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { hasRole, type Me, useMe } from '../../../app/me.tsx'
import { Code, MiddleCut } from '../../../ui/data/code.tsx'
import { Status, Tag } from '../../../ui/data/status.tsx'
import { type Column, Table } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { Menu, MenuItem, MenuLine } from '../../../ui/overlays/menu.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text } from '../text.ts'
import { type Invitation, mayInviteAs, membersChanged } from '../use-members.ts'

type Act = 'link' | 'resend' | 'withdraw'

/** The open invitations. Owners and admins hand over their link, mail them again and withdraw them. */
export function Invitations({ rows }: { readonly rows: readonly Invitation[] }) {
  const me = useMe()
  const [open, setOpen] = useState<{ readonly act: 'link' | 'withdraw'; readonly invitation: Invitation } | null>(null)
  const resend = useMutation({
    mutationFn: ({ id }: Invitation) => api('resendInvitation', { path: { id } }),
    onSuccess: ({ email }) => toast(text.resent(email)),
    onError: error => toast(apiErrorOf(error).message, 'bad'),
  })
  const act = (invitation: Invitation, name: Act): void => (name === 'resend' ? resend.mutate(invitation) : setOpen({ act: name, invitation }))
  return (
    <Panel title={text.invitationsTable} note={text.invitationsNote} isFlush>
      <Table label={text.invitationsTable} columns={columnsFor(me, act)} rows={rows} rowKey={({ id }) => id} />
      {open?.act === 'link' && <InvitationLink invitation={open.invitation} onClose={() => setOpen(null)} />}
      {open?.act === 'withdraw' && <Withdraw invitation={open.invitation} onClose={() => setOpen(null)} />}
    </Panel>
  )
}

function columnsFor(me: Me, act: (invitation: Invitation, name: Act) => void): Column<Invitation>[] {
  const columns: Column<Invitation>[] = [
    { key: 'email', head: 'Address', isName: true, cell: ({ email }) => <MiddleCut text={email} max={40} /> },
    { key: 'role', head: text.role, cell: ({ role }) => <Tag>{text.roles[role]}</Tag> },
    {
      key: 'state',
      head: text.state,
      cell: () => (
        <Status tone="warn" icon="clock" title={text.waitingMeans}>
          {text.waiting}
        </Status>
      ),
    },
    { key: 'since', head: 'Invited', cell: ({ created_at: at }) => <Time at={at} /> },
  ]
  if (!hasRole(me, 'admin')) return columns
  return [
    ...columns,
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: invitation => (
        <Menu label={text.acts(invitation.email)} trigger={<Icon name="more" />}>
          {mayInviteAs(me, invitation.role) && (
            <>
              <MenuItem icon="link" onClick={() => act(invitation, 'link')}>
                {text.link}…
              </MenuItem>
              <MenuItem icon="rotate" onClick={() => act(invitation, 'resend')}>
                {text.resend}
              </MenuItem>
              <MenuLine />
            </>
          )}
          <MenuItem icon="trash" isDanger onClick={() => act(invitation, 'withdraw')}>
            {text.withdraw}…
          </MenuItem>
        </Menu>
      ),
    },
  ]
}

interface OneInvitation {
  readonly invitation: Invitation
  readonly onClose: () => void
}

function InvitationLink({ invitation: { id, email }, onClose }: OneInvitation) {
  const link = useQuery(apiQuery('invitationLink', { path: { id } }))
  return (
    <Dialog title={text.link} onClose={onClose} actions={<Button onClick={onClose}>{text.done}</Button>}>
      <p className="quiet">{text.linkAbout(email)}</p>
      <Loaded query={link}>{({ link }) => <Code text={link} />}</Loaded>
    </Dialog>
  )
}

function Withdraw({ invitation: { id, email }, onClose }: OneInvitation) {
  const withdraw = useMutation({
    mutationFn: () => api('withdrawInvitation', { path: { id } }),
    onSuccess: async () => {
      await membersChanged()
      toast(text.withdrawn(email))
      onClose()
    },
  })
  return (
    <Confirm
      title={text.withdrawTitle}
      act={text.withdraw}
      isBusy={withdraw.isPending}
      error={withdraw.error && apiErrorOf(withdraw.error)}
      onConfirm={() => withdraw.mutate()}
      onClose={onClose}
    >
      <p>{text.withdrawAbout(email)}</p>
    </Confirm>
  )
}
