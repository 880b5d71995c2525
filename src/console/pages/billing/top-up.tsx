import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { Status } from '../../ui/data/status.tsx'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { NumberField, TextField } from '../../ui/forms/field.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { text } from './text.ts'

const [minInr, maxInr] = [100, 100_000]

/** The amount and the code of a top-up. The payment itself happens on a page of its own. */
export function TopUp({ onClose }: { readonly onClose: () => void }) {
  const billing = useQuery(apiQuery('billing', { query: { limit: 1 } }))
  const [amount, setAmount] = useState('500')
  const [promo, setPromo] = useState('')
  const inr = Number(amount)
  const isValid = /^\d+$/.test(amount.trim()) && inr >= minInr && inr <= maxInr
  const check = useMutation({ mutationFn: () => api('checkPromoCode', { body: { promo_code: promo.trim(), amount_inr: inr } }) })
  const hasAddress = billing.data !== undefined && billing.data.address !== null
  const query = new URLSearchParams({ amount: amount.trim(), ...(promo.trim() === '' ? {} : { promo: promo.trim() }) })
  return (
    <Dialog
      title={text.top.title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {isValid && hasAddress && (
            <a className="button button-primary button-md" href={`/console/checkout?${query}`} target="_blank" rel="noopener noreferrer" onClick={onClose}>
              {text.top.pay}
            </a>
          )}
        </>
      }
    >
      <Loaded query={billing}>
        {({ address }) =>
          address === null && (
            <div className="stack-3">
              <p>{text.top.needsAddress}</p>
              <div>
                <LinkButton to="/billing" search={{ tab: 'details' }}>
                  {text.top.address}
                </LinkButton>
              </div>
            </div>
          )
        }
      </Loaded>
      <NumberField
        label={text.top.amount}
        hint={text.top.amountHint}
        maxLength={6}
        value={amount}
        error={amount !== '' && !isValid ? text.top.amountError : null}
        onChange={event => setAmount(event.target.value)}
      />
      <TextField
        label={text.top.promo}
        isOptional
        maxLength={200}
        value={promo}
        onChange={event => {
          check.reset()
          setPromo(event.target.value)
        }}
      />
      {promo.trim() !== '' && (
        <div className="billing-line">
          <Button size="sm" isBusy={check.isPending} disabled={!isValid} onClick={() => check.mutate()}>
            {text.top.check}
          </Button>
          {check.data && <Status tone="good">{text.top.bonus(check.data.bonus_inr)}</Status>}
        </div>
      )}
      {check.error && <InlineError error={apiErrorOf(check.error)} />}
      <p className="quiet">{text.top.about}</p>
    </Dialog>
  )
}
