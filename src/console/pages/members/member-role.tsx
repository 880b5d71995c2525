import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions } from '../../api/call.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { type MemberRole, memberRoles } from './search.ts'
import { text } from './text.ts'
import { type Member, membersChanged, nameOf } from './use-members.ts'

type Changes = CallOptions<'updateMember'>['body']
type Capability = Member['capabilities'][number]
const capabilities = ['usage:org:view', 'cost:org:view', 'audit:view'] as const satisfies readonly Capability[]

const isSame = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every(one => b.includes(one))

/** The form for what a member may do. Only what differs is sent. */
export function MemberRoleForm({ member }: { readonly member: Member }) {
  const [role, setRole] = useState<MemberRole>(member.role)
  const [seen, setSeen] = useState<readonly Capability[]>(member.capabilities)
  const change = useMutation({
    mutationFn: (changes: Changes) => api('updateMember', { path: { id: member.uid }, body: changes }),
    onSuccess: async saved => {
      await membersChanged()
      toast(text.rightsSaved(nameOf(saved)))
    },
  })
  const changes: Changes = {
    ...(role === member.role ? {} : { role }),
    ...(isSame(seen, member.capabilities) ? {} : { capabilities: [...seen] }),
  }
  const isChanged = Object.keys(changes).length > 0
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isChanged && !change.isPending) change.mutate(changes)
      }}
    >
      <RadioCards
        label={text.role}
        value={role}
        onChange={setRole}
        options={memberRoles.map(one => ({ value: one, label: text.roles[one], hint: text.roleHints[one] }))}
      />
      {role === 'member' && (
        <fieldset className="stack-3">
          <legend className="member-legend">{text.capabilities}</legend>
          {capabilities.map(one => (
            <Check
              key={one}
              label={text.capability[one].label}
              hint={text.capability[one].hint}
              isChecked={seen.includes(one)}
              onChange={isOn => setSeen(isOn ? [...seen, one] : seen.filter(each => each !== one))}
            />
          ))}
        </fieldset>
      )}
      {change.error && <InlineError error={apiErrorOf(change.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={change.isPending} disabled={!isChanged}>
          {text.saveRole}
        </Button>
      </div>
    </form>
  )
}
