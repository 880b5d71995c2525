import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { api, type CallOptions } from '../../../api/call.ts'
import { invalidate } from '../../../api/queries.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { SelectField, TextField } from '../../../ui/forms/field.tsx'
import { InlineError } from '../../../ui/layout/error-panel.tsx'
import { SecretPanel } from '../../../ui/overlays/secret-panel.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { alertText as text } from '../text.ts'

type AlertBody = CallOptions<'createAlert'>['body']

const wholePercent = 100

/** Reads the threshold as the gateway takes it. Null for an invalid text. */
function thresholdOf(metric: AlertBody['metric'], typed: string): number | null {
  const value = Number(typed)
  if (typed.trim() === '' || !Number.isFinite(value) || value <= 0) return null
  if (metric === 'error_rate') return value <= wholePercent ? value / wholePercent : null
  return Number.isSafeInteger(value) ? value : null
}

/** The form for an alert. The secret of a webhook that is made for it is shown once. */
export function AlertForm({ slug }: { readonly slug: string }) {
  const [metric, setMetric] = useState<AlertBody['metric']>('error_rate')
  const [typed, setTyped] = useState({ error_rate: '5', latency_p95: '3000' })
  const [channel, setChannel] = useState<AlertBody['channel']>('email')
  const [target, setTarget] = useState('')
  const threshold = thresholdOf(metric, typed[metric])
  const create = useMutation({
    mutationFn: (body: AlertBody) => api('createAlert', { path: { slug }, body }),
    onSuccess: async ({ note }) => {
      setTarget('')
      await invalidate('listAlerts')
      toast(note ?? text.added)
    },
  })
  const isShare = metric === 'error_rate'
  const secret = create.data?.secret
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (threshold !== null && !create.isPending) create.mutate({ metric, threshold, channel, ...(target.trim() === '' ? {} : { target: target.trim() }) })
      }}
    >
      <div className="form-pair">
        <SelectField label={text.metric} value={metric} onChange={event => setMetric(event.target.value === 'latency_p95' ? 'latency_p95' : 'error_rate')}>
          <option value="error_rate">{text.metrics.error_rate}</option>
          <option value="latency_p95">{text.metrics.latency_p95}</option>
        </SelectField>
        <TextField
          label={isShare ? text.share : text.ms}
          inputMode="decimal"
          value={typed[metric]}
          error={threshold === null ? (isShare ? text.shareError : text.msError) : null}
          onChange={event => setTyped({ ...typed, [metric]: event.target.value })}
        />
      </div>
      <SelectField label={text.channel} value={channel} onChange={event => setChannel(event.target.value === 'webhook' ? 'webhook' : 'email')}>
        <option value="email">{text.channels.email}</option>
        <option value="webhook">{text.channels.webhook}</option>
      </SelectField>
      <TextField
        label={text.target}
        hint={channel === 'email' ? text.targetMail : text.targetHook}
        maxLength={500}
        value={target}
        onChange={event => setTarget(event.target.value)}
      />
      {create.error && <InlineError error={apiErrorOf(create.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={create.isPending} disabled={threshold === null}>
          {text.add}
        </Button>
      </div>
      {secret !== undefined && (
        <SecretPanel title={text.secretTitle} secret={secret} variable="BRIGADE_WEBHOOK_SECRET" clients={[]} onDone={() => create.reset()}>
          <p>{text.secretAbout}</p>
        </SecretPanel>
      )}
    </form>
  )
}
