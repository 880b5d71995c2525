import { Link } from '@tanstack/react-router'
import { MiddleCut } from '../../ui/data/code.tsx'
import { Money } from '../../ui/data/money.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { count, percent } from '../../ui/format/numbers.ts'
import { IconButton } from '../../ui/forms/button.tsx'
import { type ActivitySearch, type Filters, filtersOf, spanSearchOf } from '../activity/filters.ts'
import { type Activity, rowsOf, type UsageRow } from './figures.ts'
import { figureOf, type Group, type Metric, type SumMetric } from './metrics.ts'
import { text } from './text.ts'

interface ShareTableProps {
  readonly activity: Activity
  readonly group: Group
  readonly metric: Metric
  readonly search: ActivitySearch
  readonly onFilter: (filter: Filters) => void
}

/** Who or what used how much, with shares of the chosen figure. A name leads to the calls of the row. */
export function ShareTable({ activity, group, metric, search, onFilter }: ShareTableProps) {
  const rows = rowsOf(activity, group)
  if (rows === null) return <p className="quiet panel-note">{text.noGroup}</p>
  const shared: SumMetric = metric === 'p95' ? 'calls' : metric
  const total = figureOf(shared, activity.totals) ?? 0
  const shareOf = (row: UsageRow): number | null => {
    const figure = figureOf(shared, row)
    return figure === null || total === 0 ? null : figure / total
  }
  const sorted = [...rows].sort((a, b) => Number(a.filter === null) - Number(b.filter === null) || (shareOf(b) ?? 0) - (shareOf(a) ?? 0))
  const all: UsageRow = { ...activity.totals, key: 'total', name: text.total, filter: {} }
  const columns: Column<UsageRow>[] = [
    {
      key: 'name',
      head: text.heads[group],
      isName: true,
      cell: row =>
        row.filter === null ? (
          <span className="quiet">{row.name}</span>
        ) : (
          <Link to="/calls" search={{ ...spanSearchOf(search), ...filtersOf(search), ...row.filter }} className="row-link" title={text.showCalls(row.name)}>
            <MiddleCut text={row.name} max={36} />
          </Link>
        ),
    },
    { key: 'calls', head: text.columns.calls, align: 'end', isOnCards: false, cell: row => count(row.requests) },
    {
      key: 'errors',
      head: text.columns.errors,
      align: 'end',
      isOnCards: false,
      cell: row => (row.errors === undefined ? <span className="quiet">{text.noFigure}</span> : count(row.errors)),
    },
    { key: 'tokens', head: text.columns.tokens, align: 'end', isOnCards: false, cell: row => count(row.tokens) },
    { key: 'cost', head: text.columns.cost, align: 'end', isOnCards: false, cell: row => <Money inr={row.cost_inr} /> },
    { key: 'value', head: text.columns.value, align: 'end', cell: row => <Money inr={row.value_inr} /> },
    { key: 'share', head: text.share(text.metrics[shared]), width: 'min(11rem, 22vw)', cell: row => <Share share={shareOf(row)} /> },
    {
      key: 'acts',
      head: '',
      align: 'end',
      cell: row =>
        row.filter !== null &&
        row.key !== 'total' && <IconButton icon="filter" label={text.only(row.name)} onClick={() => row.filter !== null && onFilter(row.filter)} />,
    },
  ]
  return (
    <div className="share-table">
      <Table isCompact label={text.groups[group]} columns={columns} rows={[...sorted, all]} rowKey={row => row.key} />
    </div>
  )
}

function Share({ share }: { readonly share: number | null }) {
  if (share === null) return <span className="quiet">{text.noFigure}</span>
  return (
    <span className="share">
      <span className="share-bar" aria-hidden="true">
        <span style={{ inlineSize: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span className="tabular">{percent(share)}</span>
    </span>
  )
}
