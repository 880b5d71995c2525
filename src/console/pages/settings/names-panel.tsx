import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { NumberField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { nameText as text } from './text.ts'

interface NamePanelProps {
  readonly title: string
  readonly label: string
  readonly hint: string
  readonly saved: string
  readonly onSave: (name: string) => Promise<unknown>
}

/** A name that is changed in one field. What was typed stays when the gateway refuses it. */
function NamePanel({ title, label, hint, saved, onSave }: NamePanelProps) {
  const [typed, setTyped] = useState(saved)
  const name = typed.trim()
  const save = useMutation({
    mutationFn: () => onSave(name),
    onSuccess: async () => {
      await invalidate('me', 'listOrgs', 'listMembers')
      toast(text.saved)
    },
  })
  return (
    <Panel title={title}>
      <form
        className="stack-5"
        noValidate
        onSubmit={event => {
          event.preventDefault()
          if (name !== '' && name !== saved && !save.isPending) save.mutate()
        }}
      >
        <TextField label={label} hint={hint} maxLength={100} value={typed} onChange={event => setTyped(event.target.value)} />
        {save.error && <InlineError error={apiErrorOf(save.error)} />}
        <div>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={name === '' || name === saved}>
            {text.save}
          </Button>
        </div>
      </form>
    </Panel>
  )
}

/** The name of the person, as others see it. */
export function OwnNamePanel() {
  const { user } = useMe()
  return (
    <NamePanel
      title={text.ownTitle}
      label={text.own}
      hint={text.ownHint(user.email ?? '')}
      saved={user.name ?? ''}
      onSave={name => api('updateMe', { body: { name } })}
    />
  )
}

/** The name of the organisation. Only owners change it. */
export function OrgNamePanel() {
  return <NamePanel title={text.orgTitle} label={text.org} hint={text.orgHint} saved={useMe().org.name} onSave={name => api('updateOrg', { body: { name } })} />
}

/** After how many days without use a key is disabled. */
export function InactivityPanel() {
  const saved = useMe().org.key_inactivity_days
  const [kind, setKind] = useState<'never' | 'days'>(saved === null ? 'never' : 'days')
  const [typed, setTyped] = useState(saved === null ? '' : String(saved))
  const days = kind === 'never' ? null : Number(typed)
  const isValid = days === null || (/^\d+$/.test(typed.trim()) && days > 0)
  const save = useMutation({
    mutationFn: () => api('setKeyInactivity', { body: { days } }),
    onSuccess: async () => {
      await invalidate('me', 'listKeys')
      toast(text.saved)
    },
  })
  return (
    <Panel title={text.inactivityTitle}>
      <form
        className="stack-5"
        noValidate
        onSubmit={event => {
          event.preventDefault()
          if (isValid && days !== saved && !save.isPending) save.mutate()
        }}
      >
        <p className="quiet">{text.inactivityAbout}</p>
        <RadioCards label={text.inactivity} value={kind} options={text.inactivityKinds} onChange={setKind} />
        {kind === 'days' && <NumberField label={text.days} maxLength={4} value={typed} onChange={event => setTyped(event.target.value)} />}
        {save.error && <InlineError error={apiErrorOf(save.error)} />}
        <div>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isValid || days === saved}>
            {text.save}
          </Button>
        </div>
      </form>
    </Panel>
  )
}
