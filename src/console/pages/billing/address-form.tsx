import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'
import { Button } from '../../ui/forms/button.tsx'
import { TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { toast } from '../../ui/overlays/toast.tsx'
import { text } from './text.ts'

type Address = ReplyOf<'billing'>['address']
const pinShape = /^[1-9]\d{5}$/

/** The billing address. A PIN code fills in city and state, which stay open for corrections. */
export function AddressForm({ address }: { readonly address: Address }) {
  const [typed, setTyped] = useState(() => ({
    name: address?.name ?? '',
    line1: address?.line1 ?? '',
    line2: address?.line2 ?? '',
    pincode: address?.pincode ?? '',
    city: address?.city ?? '',
    state: address?.state ?? '',
  }))
  const find = useMutation({
    mutationFn: (pin: string) => api('pincode', { path: { pin } }),
    onSuccess: ({ city, state }) => setTyped(before => ({ ...before, city, state })),
  })
  const save = useMutation({
    mutationFn: () => api('setBillingAddress', { body: Object.fromEntries(Object.entries(typed).filter(([, value]) => value.trim() !== '')) }),
    onSuccess: async () => {
      await invalidate('billing')
      toast(text.address.saved)
    },
  })
  const change = (name: keyof typeof typed, value: string): void => {
    setTyped(before => ({ ...before, [name]: value }))
    if (name === 'pincode' && pinShape.test(value.trim())) find.mutate(value.trim())
  }
  const isReady = [typed.name, typed.line1, typed.pincode, typed.city, typed.state].every(value => value.trim() !== '')
  const { address: words } = text
  return (
    <form
      className="stack-5"
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (isReady && !save.isPending) save.mutate()
      }}
    >
      <TextField label={words.name} maxLength={100} value={typed.name} onChange={event => change('name', event.target.value)} />
      <TextField label={words.line1} maxLength={150} value={typed.line1} onChange={event => change('line1', event.target.value)} />
      <TextField label={words.line2} isOptional maxLength={150} value={typed.line2} onChange={event => change('line2', event.target.value)} />
      <TextField
        label={words.pin}
        hint={words.pinHint}
        inputMode="numeric"
        maxLength={6}
        value={typed.pincode}
        error={find.isError ? words.pinUnknown : null}
        onChange={event => change('pincode', event.target.value)}
      />
      <TextField label={words.city} maxLength={80} value={typed.city} onChange={event => change('city', event.target.value)} />
      <TextField label={words.state} maxLength={80} value={typed.state} onChange={event => change('state', event.target.value)} />
      {save.error && <InlineError error={apiErrorOf(save.error)} />}
      <div>
        <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
          {words.save}
        </Button>
      </div>
    </form>
  )
}
