import { Status } from '../../../ui/data/status.tsx'
import type { Column } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { count } from '../../../ui/format/numbers.ts'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { deliveryShown, text, whyText } from '../text.ts'
import { type Delivery, useDeliveries } from '../use-webhooks.ts'

/** The state of a delivery, as an icon and a word. */
export function DeliveryState({ status }: Pick<Delivery, 'status'>) {
  const { tone, icon, word, means } = deliveryShown[status]
  return (
    <Status tone={tone} title={means} {...(icon === undefined ? {} : { icon })}>
      {word}
    </Status>
  )
}

/** What the receiver answered: its status, or why there is none. */
export function Answer({ code, error }: Pick<Delivery, 'code' | 'error'>) {
  if (code !== null) return <span className="tabular">{code}</span>
  return error === null ? <span className="quiet">–</span> : <span title={whyText(error)}>{text.deliveries.noCode}</span>
}

const columns: readonly Column<Delivery>[] = [
  {
    key: 'event',
    head: text.deliveries.columns.event,
    isName: true,
    cell: ({ type, id }) => (
      <span className="cell-stack">
        <code>{type}</code>
        <span className="quiet">{id.slice(0, 12)}…</span>
      </span>
    ),
  },
  { key: 'state', head: text.deliveries.columns.state, cell: delivery => <DeliveryState status={delivery.status} /> },
  { key: 'code', head: text.deliveries.columns.code, cell: delivery => <Answer code={delivery.code} error={delivery.error} /> },
  { key: 'attempts', head: text.deliveries.columns.attempts, align: 'end', isOnCards: false, cell: ({ attempts }) => count(attempts) },
  {
    key: 'next',
    head: text.deliveries.columns.next,
    isOnCards: false,
    cell: ({ next_attempt_at: at }) => <Time at={at} none={text.deliveries.none} />,
  },
  { key: 'time', head: text.deliveries.columns.time, align: 'end', cell: ({ created_at: at }) => <Time at={at} /> },
]

interface DeliveriesProps {
  readonly id: number
  readonly open: string | undefined
  readonly onOpen: (delivery: string) => void
}

/** The deliveries of an endpoint, the newest event first. */
export function Deliveries({ id, open, onOpen }: DeliveriesProps) {
  const deliveries = useDeliveries(id)
  return (
    <Panel isFlush>
      <Loaded query={deliveries} skeleton={<Skeleton lines={5} height={28} />}>
        {rows =>
          rows.length === 0 ? (
            <Empty icon="webhook" title={text.deliveries.emptyTitle}>
              {text.deliveries.empty}
            </Empty>
          ) : (
            <VirtualTable
              label={text.tabs.deliveries}
              columns={columns}
              rows={rows}
              rowKey={({ id: delivery }) => delivery}
              onOpen={({ id: delivery }) => onOpen(delivery)}
              isOpen={({ id: delivery }) => delivery === open}
              onMore={deliveries.hasNextPage ? () => void deliveries.fetchNextPage() : null}
              isLoadingMore={deliveries.isFetchingNextPage}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}
