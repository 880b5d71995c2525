import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type CallOptions, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { money } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { choiceOf, limitOf, MoneyField } from '../../ui/forms/money-field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { AddressForm } from './address-form.tsx'
import { text } from './text.ts'

type Profile = ReplyOf<'billingProfile'>

/** The address, what is on invoices, and the notice of a low balance. Members read, owners change. */
export function DetailsTab({ isOwner }: { readonly isOwner: boolean }) {
  const billing = useQuery(apiQuery('billing', { query: { limit: 1 } }))
  const profile = useQuery(apiQuery('billingProfile'))
  return (
    <div className="billing-columns">
      <Panel title={text.address.title}>
        <Loaded query={billing}>
          {({ address }) =>
            isOwner ? (
              <AddressForm address={address} />
            ) : (
              <p>
                {address === null
                  ? text.address.none
                  : [address.name, address.line1, address.line2, address.city, address.state, address.pincode].filter(Boolean).join(', ')}
              </p>
            )
          }
        </Loaded>
      </Panel>
      <Panel title={text.profile.title}>
        <Loaded query={profile}>{data => (isOwner ? <ProfileForm profile={data} /> : <ProfileFacts profile={data} />)}</Loaded>
      </Panel>
      <Panel title={text.low.title}>
        <Loaded query={billing}>
          {({ low_balance_threshold_inr: low }) => (isOwner ? <LowForm low={low} /> : <p>{low === null ? text.low.none : money(low)}</p>)}
        </Loaded>
      </Panel>
    </div>
  )
}

function ProfileFacts({ profile }: { readonly profile: Profile }) {
  return (
    <Facts
      facts={[
        [text.profile.legal, profile.legal_name ?? text.profile.none],
        [text.profile.email, profile.billing_email ?? text.profile.none],
        [text.profile.gstin, profile.gstin ?? text.profile.none],
      ]}
    />
  )
}

const fieldsOf = ({ legal_name: legal, billing_email: email, gstin }: Profile) => ({ legal_name: legal ?? '', billing_email: email ?? '', gstin: gstin ?? '' })

/** The form for what is on invoices. Only fields that differ are sent, and an empty one is cleared. */
function ProfileForm({ profile }: { readonly profile: Profile }) {
  const [before, setBefore] = useState(() => fieldsOf(profile))
  const [typed, setTyped] = useState(before)
  const save = useMutation({
    mutationFn: (body: CallOptions<'setBillingProfile'>['body']) => api('setBillingProfile', { body }),
    onSuccess: async reply => {
      setBefore(fieldsOf(reply))
      setTyped(fieldsOf(reply))
      await invalidate('billingProfile')
      toast(text.profile.saved)
    },
  })
  const names = ['legal_name', 'billing_email', 'gstin'] as const
  const changes = Object.fromEntries(names.filter(name => typed[name].trim() !== before[name]).map(name => [name, typed[name].trim() || null]))
  const isChanged = Object.keys(changes).length > 0
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isChanged && !save.isPending) save.mutate(changes)
      }}
    >
      <TextField
        label={text.profile.legal}
        maxLength={100}
        value={typed.legal_name}
        onChange={event => setTyped({ ...typed, legal_name: event.target.value })}
      />
      <TextField
        label={text.profile.email}
        type="email"
        maxLength={254}
        value={typed.billing_email}
        onChange={event => setTyped({ ...typed, billing_email: event.target.value })}
      />
      {profile.business_invoices ? (
        <GstinField value={typed.gstin} onChange={gstin => setTyped({ ...typed, gstin })} />
      ) : (
        <p className="quiet">{text.profile.gstinOff}</p>
      )}
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isChanged}>
          {text.profile.save}
        </Button>
      </div>
    </form>
  )
}

function GstinField({ value, onChange }: { readonly value: string; readonly onChange: (gstin: string) => void }) {
  const check = useMutation({ mutationFn: () => api('validateGstin', { body: { gstin: value.trim() } }) })
  const result = check.data
  return (
    <div className="stack-3">
      <TextField
        label={text.profile.gstin}
        maxLength={20}
        value={value}
        error={result?.valid === false ? result.message : null}
        onChange={event => {
          check.reset()
          onChange(event.target.value)
        }}
      />
      <div className="billing-line">
        <Button size="sm" isBusy={check.isPending} disabled={value.trim() === ''} onClick={() => check.mutate()}>
          {text.profile.check}
        </Button>
        {result?.valid === true && <Status tone="good">{text.profile.valid(result.state, result.pan)}</Status>}
      </div>
      {check.error && <InlineError error={apiErrorOf(check.error)} />}
    </div>
  )
}

/** The form for the notice of a low balance. No notice is a choice of its own. */
function LowForm({ low }: { readonly low: number | null }) {
  const [before, setBefore] = useState(low)
  const [choice, setChoice] = useState(() => choiceOf(low))
  const inr = limitOf(choice)
  const save = useMutation({
    mutationFn: (next: number | null) => api('setBillingSettings', { body: { low_balance_threshold_inr: next } }),
    onSuccess: async reply => {
      setBefore(reply.low_balance_threshold_inr)
      await invalidate('billing')
      toast(text.low.saved)
    },
  })
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (inr !== undefined && inr !== before && !save.isPending) save.mutate(inr)
      }}
    >
      <p className="quiet">{text.low.about}</p>
      <MoneyField label={text.low.field} noneLabel={text.low.none} value={choice} onChange={setChoice} />
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={inr === undefined || inr === before}>
          {text.low.save}
        </Button>
      </div>
    </form>
  )
}
