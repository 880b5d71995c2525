import { getRouteApi } from '@tanstack/react-router'
import { useEffect } from 'react'
import { invalidate } from '../../api/queries.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { BalanceTab, InvoicesTab } from './balance-tab.tsx'
import './billing.css'
import { DetailsTab } from './details-tab.tsx'
import { type BillingSearch, type BillingTab, billingTabs } from './search.ts'
import { text } from './text.ts'
import { TopUp } from './top-up.tsx'

const route = getRouteApi('/billing')

/** Reads the balance again when the person comes back from the page of the payment. */
function useFreshBalance(): void {
  useEffect(() => {
    const onFocus = (): void => void invalidate('billing', 'listInvoices')
    addEventListener('focus', onFocus)
    return () => removeEventListener('focus', onFocus)
  }, [])
}

/** The balance, the ledger, the invoices, and what is on them. */
export function BillingPage() {
  const isOwner = hasRole(useMe(), 'owner')
  const { tab = 'balance', topup: isToppingUp } = route.useSearch()
  const navigate = route.useNavigate()
  useFreshBalance()
  const show = (search: BillingSearch): void => void navigate({ search, replace: true, resetScroll: false })
  return (
    <Page
      title={text.title}
      intro={isOwner ? text.intro : `${text.intro} ${text.ownersOnly}`}
      actions={
        isOwner && (
          <Button look="primary" icon="plus" onClick={() => show({ ...(tab === 'balance' ? {} : { tab }), topup: true })}>
            {text.topUp}
          </Button>
        )
      }
    >
      <Tabs
        label={text.title}
        value={tab}
        onChange={next => show(next === 'balance' ? {} : { tab: next as Exclude<BillingTab, 'balance'> })}
        tabs={billingTabs.map(id => ({ id, label: text.tabs[id] }))}
      >
        <div className="billing-tab">
          {tab === 'balance' && <BalanceTab />}
          {tab === 'invoices' && <InvoicesTab isOwner={isOwner} />}
          {tab === 'details' && <DetailsTab isOwner={isOwner} />}
        </div>
      </Tabs>
      {isToppingUp && isOwner && <TopUp onClose={() => show(tab === 'balance' ? {} : { tab })} />}
    </Page>
  )
}
