import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api } from '../../../api/call.ts'
import { apiQuery } from '../../../api/queries.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Button, IconButton } from '../../../ui/forms/button.tsx'
import { Combobox, type ComboOption } from '../../../ui/forms/combobox.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Confirm } from '../../../ui/overlays/confirm.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { findMembers } from '../dialogs/find.ts'
import { dialogText } from '../dialogs/text.ts'
import { memoryChanged, type Share } from '../use-memory.ts'

const { people: words, cancel } = dialogText

/** Who may open a shared space. Its owner, and owners and admins of the organisation, change that. */
export function SpacePeople({ space }: { readonly space: string }) {
  const shares = useQuery(apiQuery('listSharesConsole'))
  return (
    <Panel title={words.title}>
      <Loaded query={shares}>
        {({ shares: all }) => {
          const share = all.find(one => one.space === space)
          return share ? <People share={share} /> : <p className="quiet">{words.onlyOwner}</p>
        }}
      </Loaded>
    </Panel>
  )
}

function People({ share }: { readonly share: Share }) {
  const me = useMe()
  const members = useQuery(apiQuery('listMembers'))
  const [chosen, setChosen] = useState<readonly ComboOption[]>([])
  const [isClosing, setClosing] = useState(false)
  const nameOf = (uid: number): string => {
    if (uid === me.user.id) return words.you
    const found = members.data?.members.find(one => one.uid === uid)
    return found?.name ?? found?.email ?? `Member ${uid}`
  }
  const change = useMutation({
    mutationFn: async ({ add = [], remove }: { add?: readonly ComboOption[]; remove?: number }) => {
      for (const { value } of add) await api('grantShareConsole', { path: { space: share.space, uid: value } })
      if (remove !== undefined) await api('revokeShareConsole', { path: { space: share.space, uid: remove } })
    },
    onSuccess: (_, { add = [], remove }) => {
      for (const { label } of add) toast(words.added(label))
      if (remove !== undefined) toast(words.removed(nameOf(remove)))
      setChosen([])
    },
    onSettled: memoryChanged,
  })
  const mayChange = share.owner === me.user.id || hasRole(me, 'admin')
  return (
    <div className="stack-5">
      <p className="quiet">{mayChange ? words.about : `${words.about} ${words.onlyOwner}`}</p>
      <ul className="memory-people">
        <li>
          <span>{nameOf(share.owner)}</span>
          <span className="quiet">{words.owner}</span>
        </li>
        {share.member_uids.map(uid => (
          <li key={uid}>
            <span>{nameOf(uid)}</span>
            {mayChange && (
              <IconButton icon="close" label={words.remove(nameOf(uid))} disabled={change.isPending} onClick={() => change.mutate({ remove: uid })} />
            )}
          </li>
        ))}
      </ul>
      {mayChange && (
        <div className="stack-3">
          <Combobox
            label={words.add}
            name="memory-grant"
            isMultiple
            placeholder={dialogText.space.peoplePlaceholder}
            value={chosen}
            onChange={setChosen}
            search={(typed, signal) => findMembers(typed, [share.owner, ...share.member_uids], signal)}
          />
          {chosen.length > 0 && (
            <div className="memory-row">
              <Button size="sm" look="primary" isBusy={change.isPending} onClick={() => change.mutate({ add: chosen })}>
                {words.addAct}
              </Button>
              <Button size="sm" onClick={() => setChosen([])}>
                {cancel}
              </Button>
            </div>
          )}
          {change.error && <InlineError error={apiErrorOf(change.error)} />}
          <div>
            <Button size="sm" look="ghost" icon="trash" onClick={() => setClosing(true)}>
              {words.close}
            </Button>
          </div>
        </div>
      )}
      {isClosing && <CloseSpace space={share.space} onClose={() => setClosing(false)} />}
    </div>
  )
}

function CloseSpace({ space, onClose }: { readonly space: string; readonly onClose: () => void }) {
  const navigate = useNavigate()
  const close = useMutation({
    mutationFn: () => api('retireShareConsole', { path: { space } }),
    onSuccess: async () => {
      onClose()
      await navigate({ to: '/memory/$', params: { _splat: 'shared' } })
      await memoryChanged()
    },
  })
  return (
    <Confirm
      title={words.closeTitle}
      act={words.closeAct}
      nameToType={space}
      isBusy={close.isPending}
      error={close.error && apiErrorOf(close.error)}
      onConfirm={() => close.mutate()}
      onClose={onClose}
    >
      <p>{words.closeAbout}</p>
    </Confirm>
  )
}
