import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type ReplyOf } from '../../../api/call.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Code } from '../../../ui/data/code.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { RadioCards } from '../../../ui/forms/choices.tsx'
import { TextAreaField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { type MemberRole, memberRoles } from '../search.ts'
import { text } from '../text.ts'
import { membersChanged } from '../use-members.ts'
import { addressesIn } from './addresses.ts'

/** The gateway invites at most this number of addresses in one call. */
const addressesMax = 200

type Result = ReplyOf<'inviteMembers'>['results'][number]

interface Invited {
  readonly results: readonly Result[]
  /** Null when nobody was invited. */
  readonly link: string | null
}

/** Invites the addresses, and asks for the link, which is the same for each of them. */
async function invite(emails: readonly string[], role: MemberRole): Promise<Invited> {
  const { results } = await api('inviteMembers', { body: { emails: [...emails], role } })
  const first = results.find(({ invitation }) => invitation !== null)?.invitation
  const link = first ? (await api('invitationLink', { path: { id: first.id } })).link : null
  return { results, link }
}

/** The form that invites people, and then what became of each address. */
export function InvitePeople({ onClose }: { readonly onClose: () => void }) {
  const me = useMe()
  const [typed, setTyped] = useState('')
  const [role, setRole] = useState<MemberRole>('member')
  const send = useMutation({ mutationFn: (emails: readonly string[]) => invite(emails, role), onSuccess: () => membersChanged() })
  const addresses = addressesIn(typed)
  const isReady = addresses.length > 0 && addresses.length <= addressesMax
  if (send.data)
    return (
      <InvitedPeople
        invited={send.data}
        onClose={onClose}
        onCorrect={refused => {
          setTyped(refused.join('\n'))
          send.reset()
        }}
      />
    )
  return (
    <Dialog
      title={text.invite}
      onClose={onClose}
      onSubmit={() => isReady && !send.isPending && send.mutate(addresses)}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" isBusy={send.isPending} disabled={!isReady}>
            {text.inviteAct(addresses.length)}
          </Button>
        </>
      }
    >
      <TextAreaField
        label={text.addresses}
        hint={
          <>
            {text.addressesHint} <span role="status">{text.found(addresses.length)}</span>
          </>
        }
        placeholder={text.addressesPlaceholder}
        rows={4}
        value={typed}
        error={addresses.length > addressesMax ? text.tooMany(addressesMax) : null}
        onChange={event => setTyped(event.target.value)}
      />
      <RadioCards
        label={text.role}
        value={role}
        onChange={setRole}
        options={[...memberRoles]
          .reverse()
          .filter(one => one !== 'owner' || hasRole(me, 'owner'))
          .map(one => ({ value: one, label: text.roles[one], hint: text.roleHints[one] }))}
      />
      {send.error && <InlineError error={apiErrorOf(send.error)} />}
    </Dialog>
  )
}

interface InvitedPeopleProps {
  readonly invited: Invited
  readonly onClose: () => void
  readonly onCorrect: (refused: readonly string[]) => void
}

function InvitedPeople({ invited: { results, link }, onClose, onCorrect }: InvitedPeopleProps) {
  const refused = results.filter(({ error }) => error !== null)
  return (
    <Dialog
      title={text.invitedTitle(results.length - refused.length)}
      onClose={onClose}
      actions={
        <>
          {refused.length > 0 && <Button onClick={() => onCorrect(refused.map(({ email }) => email))}>{text.refusedAgain}</Button>}
          <Button look="primary" onClick={onClose}>
            {text.done}
          </Button>
        </>
      }
    >
      {link !== null && (
        <>
          <p className="quiet">{text.invitedAbout}</p>
          <Code text={link} />
        </>
      )}
      {refused.length > 0 && (
        <div className="invite-refused" role="alert">
          <p>{text.refused}</p>
          <ul>
            {refused.map(({ email, error }) => (
              <li key={email}>
                <strong>{email}</strong> <span className="quiet">{error?.message}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Dialog>
  )
}
