import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type CallOptions } from '../../../api/call.ts'
import { useNow } from '../../../ui/data/time.tsx'
import { readAmount } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { Dialog } from '../../../ui/overlays/dialog.tsx'
import { type BudgetRequest, subjectText, text } from './request-text.ts'

type Decision = CallOptions<'decideBudgetRequest'>['body']

const hourMs = 3600_000
const ends = { hour: hourMs, day: 24 * hourMs, week: 7 * 24 * hourMs } as const
type End = keyof typeof ends | 'default'

interface GrantRequestProps {
  readonly request: BudgetRequest
  readonly onClose: () => void
  readonly onDone: (request: BudgetRequest) => void
}

/** Grants a request: how much, and until when. The amount is what is asked unless the person types another one. */
export function GrantRequest({ request, onClose, onDone }: GrantRequestProps) {
  const now = useNow()
  const isCalls = request.amount_inr === null
  const [typed, setTyped] = useState(String(isCalls ? request.calls : request.amount_inr))
  const [end, setEnd] = useState<End>('default')
  const amount = amountIn(typed, isCalls)
  const hasPeriod = request.period !== null && request.period !== 'ever'
  const possible = (Object.keys(ends) as (keyof typeof ends)[]).filter(one => !hasPeriod || now + ends[one] < Date.parse(request.expires_at))
  const grant = useMutation({
    mutationFn: (body: Decision) => api('decideBudgetRequest', { path: { id: String(request.id) }, body }),
    onSuccess: reply => onDone(reply.request),
  })
  const submit = (): void => {
    if (amount === null || grant.isPending) return
    grant.mutate({
      approve: true,
      ...(isCalls ? { calls: amount } : { amount_inr: amount }),
      ...(end === 'default' ? {} : { until: new Date(Date.now() + ends[end]).toISOString() }),
    })
  }
  return (
    <Dialog
      title={subjectText(request)}
      width="sm"
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button look="primary" type="submit" isBusy={grant.isPending} disabled={amount === null}>
            {text.grantAct}
          </Button>
        </>
      }
    >
      <p className="request-reason">“{request.reason}”</p>
      <TextField
        label={isCalls ? text.calls : text.amount}
        inputMode="decimal"
        value={typed}
        error={amount === null ? text.amountError : null}
        onChange={event => setTyped(event.target.value)}
      />
      <SelectField label={text.until} hint={text.untilHint} value={end} onChange={event => setEnd(event.target.value as End)}>
        <option value="default">{hasPeriod ? text.usualEnd(request.expires_at) : text.ends.month}</option>
        {possible.map(one => (
          <option key={one} value={one}>
            {text.ends[one]}
          </option>
        ))}
      </SelectField>
      {grant.error && <InlineError error={apiErrorOf(grant.error)} />}
    </Dialog>
  )
}

/** Returns the amount that was typed, or null. */
function amountIn(typed: string, isCalls: boolean): number | null {
  if (isCalls) return /^[1-9]\d{0,5}$/.test(typed.trim()) ? Number(typed) : null
  const read = readAmount(typed)
  return read.ok ? read.inr : null
}
