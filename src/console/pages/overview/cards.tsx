import type { ReactNode } from 'react'
import { Spark } from '../../ui/charts/spark.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { count, exactMoney, shortCount, shortMoney, withDisplay } from '../../ui/format/numbers.ts'
import { latencyText } from '../activity/latency.ts'
import { type Activity, chartSpan, courseOf, latencyCourse, monthOf } from './figures.ts'
import { text } from './text.ts'

const dayMs = 86_400_000
const istOffsetMs = 19_800_000

interface CardProps {
  readonly title: string
  readonly value: string
  /** The value with all its digits, or what it means. */
  readonly help?: string
  readonly note: ReactNode
  readonly course: readonly number[]
}

function Card({ title, value, help, note, course }: CardProps) {
  return (
    <div className="card">
      <h2>{title}</h2>
      <div className="card-main">
        <p className="card-value tabular" title={help}>
          {value}
        </p>
        <Spark values={course} />
      </div>
      <p className="card-note">{note}</p>
    </div>
  )
}

/** The four figures of the month and of its latency. They come from the same reply as the chart and the tables. */
export function Cards({ activity, today }: { readonly activity: Activity; readonly today: string }) {
  const now = useNow()
  const month = monthOf(activity, today, ((now + istOffsetMs) % dayMs) / dayMs)
  const span = chartSpan(today)
  const p95Ms = activity.latency?.p95_ms ?? null
  const course = (figure: (day: Activity['days'][number]) => number): number[] => courseOf(activity, span, figure)
  return (
    <div className="cards">
      <Card
        title={text.spend}
        value={withDisplay(shortMoney(month.valueInr), month.valueInr)}
        help={`${exactMoney(month.valueInr)}. ${text.valueHelp} ${text.charged(exactMoney(month.costInr))}`}
        note={text.spendNote(month.forecastInr)}
        course={course(day => day.value_inr)}
      />
      <Card
        title={text.calls}
        value={shortCount(month.calls)}
        help={count(month.calls)}
        note={text.callsNote(month.calls / Math.max(1, month.days))}
        course={course(day => day.requests)}
      />
      <Card
        title={text.errors}
        value={shortCount(month.errors)}
        help={count(month.errors)}
        note={text.errorNote(month.errors, month.calls)}
        course={course(day => day.errors)}
      />
      <Card
        title={text.latency}
        value={p95Ms === null ? '–' : latencyText(p95Ms)}
        help={text.latencyHelp}
        note={text.latencyNote(activity.latency?.p50_ms ?? null)}
        course={latencyCourse(activity, span)}
      />
    </div>
  )
}
