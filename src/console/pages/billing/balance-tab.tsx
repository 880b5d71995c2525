import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { api, type ReplyOf } from '../../api/call.ts'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Money } from '../../ui/data/money.tsx'
import { Status } from '../../ui/data/status.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Empty } from '../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { paymentShown, text } from './text.ts'

type Billing = ReplyOf<'billing'>
const pageSize = 50

const ledger: readonly Column<Billing['ledger'][number]>[] = [
  { key: 'what', head: text.columns.what, isName: true, cell: ({ reason }) => text.reasons[reason] },
  { key: 'ref', head: text.columns.reference, isOnCards: false, cell: ({ ref }) => <MiddleCut text={ref} max={30} /> },
  { key: 'amount', head: text.columns.amount, align: 'end', cell: ({ amount_inr: inr }) => <Money inr={inr} /> },
  { key: 'after', head: text.columns.after, align: 'end', cell: ({ balance_after_inr: inr }) => <Money inr={inr} /> },
  { key: 'time', head: text.columns.time, align: 'end', cell: ({ created_at: at }) => <Time at={at} /> },
]

const payments: readonly Column<Billing['payments'][number]>[] = [
  { key: 'payment', head: text.columns.payment, isName: true, cell: ({ payment_id: id }) => <MiddleCut text={id} max={28} /> },
  {
    key: 'state',
    head: text.columns.state,
    cell: ({ status }) => (
      <Status tone={paymentShown[status].tone} title={paymentShown[status].means}>
        {paymentShown[status].word}
      </Status>
    ),
  },
  { key: 'amount', head: text.columns.amount, align: 'end', cell: ({ amount_inr: inr }) => <Money inr={inr} /> },
  { key: 'bonus', head: text.columns.bonus, align: 'end', isOnCards: false, cell: ({ bonus_inr: inr }) => <Money inr={inr} /> },
  { key: 'time', head: text.columns.time, align: 'end', cell: ({ created_at: at }) => <Time at={at} /> },
]

/** The balance with its ledger. The ledger is read in pages; the other figures come with its first page. */
export function BalanceTab() {
  const billing = useInfiniteQuery({
    queryKey: ['billing', 'pages'],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => api('billing', { query: { limit: pageSize, ...(pageParam === undefined ? {} : { before: pageParam }) }, signal }),
    getNextPageParam: page => page.next_before ?? undefined,
  })
  const [first] = billing.data?.pages ?? []
  const rows = billing.data?.pages.flatMap(page => page.ledger) ?? []
  return (
    <>
      <Panel title={text.balance}>
        <Loaded query={billing}>{() => first !== undefined && <Sums billing={first} />}</Loaded>
      </Panel>
      {first !== undefined && first.payments.length > 0 && (
        <Panel title={text.payments} isFlush>
          <VirtualTable
            label={text.payments}
            columns={payments}
            rows={first.payments}
            rowKey={({ payment_id: id }) => id}
            onMore={null}
            isLoadingMore={false}
          />
        </Panel>
      )}
      <Panel title={text.ledger} isFlush>
        <Loaded query={billing} skeleton={<Skeleton lines={5} height={28} />}>
          {() =>
            rows.length === 0 ? (
              <Empty icon="wallet" title={text.ledgerEmpty}>
                {text.ledgerHint}
              </Empty>
            ) : (
              <VirtualTable
                label={text.ledger}
                columns={ledger}
                rows={rows}
                rowKey={({ id }) => id}
                onMore={billing.hasNextPage ? () => void billing.fetchNextPage() : null}
                isLoadingMore={billing.isFetchingNextPage}
              />
            )
          }
        </Loaded>
      </Panel>
    </>
  )
}

function Sums({ billing }: { readonly billing: Billing }) {
  const { balance_inr: balance, low_balance_threshold_inr: low, usage_30d: days } = billing
  const isLow = low !== null && balance < low
  return (
    <div className="stack-5">
      <p className="balance">
        <Money inr={balance} /> {isLow && <Status tone="warn">low</Status>}
      </p>
      <Facts
        facts={[
          [text.threshold, low === null ? text.noThreshold : <Money key="low" inr={low} />],
          [text.spent, <Money key="spent" inr={days.reduce((sum, day) => sum + day.cost_inr, 0)} />],
          [text.calls, count(days.reduce((sum, day) => sum + day.requests, 0))],
        ]}
      />
    </div>
  )
}

type Invoice = ReplyOf<'listInvoices'>['invoices'][number]

const invoicesOf = (isOwner: boolean): readonly Column<Invoice>[] => [
  { key: 'number', head: text.invoices.columns.number, isName: true, cell: ({ number }) => number },
  { key: 'date', head: text.invoices.columns.date, cell: ({ date }) => date },
  { key: 'taxable', head: text.invoices.columns.taxable, align: 'end', isOnCards: false, cell: ({ taxable_inr: inr }) => <Money inr={inr} /> },
  {
    key: 'tax',
    head: text.invoices.columns.tax,
    align: 'end',
    isOnCards: false,
    cell: ({ cgst_inr: cgst, sgst_inr: sgst, igst_inr: igst }) => <Money inr={cgst + sgst + igst} />,
  },
  { key: 'total', head: text.invoices.columns.total, align: 'end', cell: ({ total_inr: inr }) => <Money inr={inr} /> },
  {
    key: 'open',
    head: text.invoices.columns.open,
    align: 'end',
    cell: ({ payment_id: id, number }) => (
      <span className="invoice-links">
        <a href={`/me/invoices/${encodeURIComponent(id)}`} target="_blank" rel="noreferrer">
          {text.invoices.open}
          <span className="visually-hidden"> {number}</span>
        </a>
        {isOwner && (
          <a href={`/me/billing/receipts/${encodeURIComponent(id)}`} target="_blank" rel="noreferrer">
            {text.invoices.receipt}
            <span className="visually-hidden"> {number}</span>
          </a>
        )}
      </span>
    ),
  },
]

/** The invoices, the newest first. Each opens as a page to print. */
export function InvoicesTab({ isOwner }: { readonly isOwner: boolean }) {
  const invoices = useInfiniteQuery({
    queryKey: ['listInvoices', 'pages'],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => api('listInvoices', { query: pageParam === undefined ? {} : { before: pageParam }, signal }),
    getNextPageParam: page => page.next_before ?? undefined,
    select: data => data.pages.flatMap(page => page.invoices),
  })
  return (
    <Panel isFlush>
      <Loaded query={invoices} skeleton={<Skeleton lines={5} height={28} />}>
        {rows =>
          rows.length === 0 ? (
            <Empty icon="file" title={text.invoices.empty}>
              {text.invoices.hint}
            </Empty>
          ) : (
            <>
              <Table label={text.invoices.title} columns={invoicesOf(isOwner)} rows={rows} rowKey={({ number }) => number} />
              {invoices.hasNextPage && <More onMore={() => void invoices.fetchNextPage()} />}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}

function More({ onMore }: { readonly onMore: () => void }) {
  return (
    <p className="invoice-more">
      <button type="button" className="button button-plain button-sm" onClick={onMore}>
        Load more
      </button>
    </p>
  )
}
