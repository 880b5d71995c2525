import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'
import { type Member, membersChanged, nameOf } from './use-members.ts'

const countedMax = 100
const namedMax = 4

interface RemoveMemberProps {
  readonly member: Member
  readonly onClose: () => void
  /** The person is no longer in the list. */
  readonly onGone: () => void
}

/** Asks before a membership ends. It names the keys that end and the agents that stay, as they are now. */
export function RemoveMember({ member, onClose, onGone }: RemoveMemberProps) {
  const me = useMe()
  const isOwn = member.uid === me.user.id
  const remove = useMutation({
    mutationFn: () => api('removeMember', { path: { id: member.uid } }),
    onSuccess: async () => {
      // The session of somebody who leaves is over. The next page asks who is signed in.
      if (isOwn) return location.assign('/console')
      await Promise.all([membersChanged(), invalidate('listKeys', 'listAgentsConsole')])
      toast(text.removedToast(nameOf(member)))
      onClose()
      onGone()
    },
  })
  const [before, after] = text.removeAbout(me.org.name)
  return (
    <Confirm
      title={isOwn ? text.leave : text.removeTitle}
      act={isOwn ? text.leave : text.remove}
      nameToType={member.email}
      isBusy={remove.isPending}
      error={remove.error && apiErrorOf(remove.error)}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        {before}
        <strong>{nameOf(member)}</strong>
        {after}
      </p>
      {isOwn && <p>{text.leaveAbout(me.org.name)}</p>}
      <WhatEnds uid={member.uid} />
      <p>{text.endsMore}</p>
    </Confirm>
  )
}

/** Which keys of a person end, and which agents stay. */
function WhatEnds({ uid }: { readonly uid: number }) {
  const owner = String(uid)
  const keys = useQuery(apiQuery('listKeys', { query: { owner, limit: countedMax } }))
  const agents = useQuery(apiQuery('listAgentsConsole', { query: { owner, limit: countedMax } }))
  return (
    <>
      <Loaded query={keys}>
        {({ keys: found, next_cursor: next }) => (
          <p>
            {text.endsKeys(
              found.length,
              next !== null,
              found.slice(0, namedMax).map(({ name }) => name),
            )}
          </p>
        )}
      </Loaded>
      <Loaded query={agents}>
        {({ agents: found, total_estimate: total }) => {
          const living = found.filter(({ status, playground }) => status !== 'revoked' && !playground).length
          return <p>{text.keepsAgents(living === countedMax ? (total ?? living) : living)}</p>
        }}
      </Loaded>
    </>
  )
}
