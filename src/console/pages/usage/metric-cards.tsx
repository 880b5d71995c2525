import { useId } from 'react'
import { exactMoney, percent, wholeMoney, withDisplay } from '../../ui/format/numbers.ts'
import { type Activity, totalOf } from './figures.ts'
import { formats, type Metric, metrics } from './metrics.ts'
import { text } from './text.ts'

interface MetricCardsProps {
  readonly activity: Activity
  /** The report of the span before. Undefined until it is read. */
  readonly before: Activity | undefined
  /** The days of the span before, in words. */
  readonly beforeDays: string
  readonly value: Metric
  readonly onChange: (metric: Metric) => void
}

/** The figures of the span beside those of the span before. Choosing one of them draws it in the chart. */
export function MetricCards({ activity, before, beforeDays, value, onChange }: MetricCardsProps) {
  const name = useId()
  return (
    <fieldset className="metric-cards">
      <legend className="visually-hidden">{text.counts}</legend>
      {metrics.map(metric => {
        const total = totalOf(metric, activity)
        const isMoney = metric === 'value' || metric === 'cost'
        return (
          <label key={metric} className="metric-card" title={total !== null && isMoney ? exactMoney(total) : undefined}>
            <input type="radio" name={name} className="visually-hidden" checked={metric === value} onChange={() => onChange(metric)} />
            <span className="metric-name">{text.metrics[metric]}</span>
            <span className="metric-value tabular">{total === null ? text.noFigure : shownOf(metric, total)}</span>
            <span className="metric-before tabular" title={text.beforeHelp(beforeDays)}>
              {before === undefined ? ' ' : <Before metric={metric} total={total} before={totalOf(metric, before)} />}
            </span>
          </label>
        )
      })}
    </fieldset>
  )
}

const shownOf = (metric: Metric, total: number): string => {
  const figure = formats[metric].formatShort(total)
  return metric === 'value' || metric === 'cost' ? withDisplay(figure, total) : figure
}

function Before({ metric, total, before }: { readonly metric: Metric; readonly total: number | null; readonly before: number | null }) {
  if (before === null || before === 0) return text.noneBefore
  const change = total === null ? null : total / before - 1
  const isWorse = change !== null && change > 0 && (metric === 'errors' || metric === 'p95')
  const figure = metric === 'value' || metric === 'cost' ? wholeMoney(before) : formats[metric].formatShort(before)
  if (change === 0) return `${text.noChange} ${text.before(figure)}`
  return (
    <>
      {change !== null && (
        <span className={isWorse ? 'metric-change metric-worse' : 'metric-change'}>
          {change > 0 ? '↑' : '↓'} {percent(Math.abs(change))}
        </span>
      )}{' '}
      {text.before(figure)}
    </>
  )
}
