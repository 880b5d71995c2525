import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { RadioCards } from '../../ui/forms/choices.tsx'
import { NumberField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Confirm } from '../../ui/overlays/confirm.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'

const daysMax = 365

/** How long prompts and answers are kept. A shorter time deletes content, so the page asks before. */
export function RetentionPanel() {
  const me = useMe()
  const saved = me.org.data_retention_days
  const isAdmin = hasRole(me, 'admin')
  const [kind, setKind] = useState<'zero' | 'window'>(saved === 0 ? 'zero' : 'window')
  const [typed, setTyped] = useState(saved === 0 ? '' : String(saved))
  const [isAsking, setAsking] = useState(false)
  const days = kind === 'zero' ? 0 : Number(typed)
  const isValid = kind === 'zero' || (/^\d+$/.test(typed.trim()) && days >= 1 && days <= daysMax)
  const save = useMutation({
    mutationFn: () => api('setDataRetention', { body: { days } }),
    onSuccess: async reply => {
      await invalidate('me', 'dpia')
      setAsking(false)
      toast(text.retention.saved(reply.days))
    },
  })
  if (!isAdmin)
    return (
      <Panel title={text.retention.title}>
        <p>{text.retention.saved(saved)}</p>
        <p className="quiet">{text.retention.only}</p>
      </Panel>
    )
  return (
    <Panel title={text.retention.title}>
      <form
        className="stack-5"
        noValidate
        onSubmit={event => {
          event.preventDefault()
          if (!isValid || days === saved || save.isPending) return
          if (days < saved) setAsking(true)
          else save.mutate()
        }}
      >
        <p className="quiet">{text.retention.about}</p>
        <RadioCards label={text.retention.choice} value={kind} options={text.retention.kinds} onChange={setKind} />
        {kind === 'window' && (
          <NumberField
            label={text.retention.days}
            hint={text.retention.daysHint}
            maxLength={3}
            value={typed}
            error={typed !== '' && !isValid ? text.retention.daysError : null}
            onChange={event => setTyped(event.target.value)}
          />
        )}
        {save.error && !isAsking && <InlineError error={apiErrorOf(save.error)} />}
        <div>
          <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isValid || days === saved}>
            {text.retention.save}
          </Button>
        </div>
      </form>
      {isAsking && (
        <Confirm
          title={text.retention.shorter}
          act={text.retention.shorterAct}
          isBusy={save.isPending}
          error={save.error && apiErrorOf(save.error)}
          onConfirm={() => save.mutate()}
          onClose={() => setAsking(false)}
        >
          <p>{text.retention.shorterAbout(days)}</p>
        </Confirm>
      )}
    </Panel>
  )
}
