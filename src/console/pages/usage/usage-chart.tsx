import { StackedBars } from '../../ui/charts/stacked-bars.tsx'
import { dayText, longDayText } from '../../ui/format/dates.ts'
import { pointsOf } from '../activity/span.ts'
import { type Activity, seriesOf } from './figures.ts'
import { formats, type Metric } from './metrics.ts'
import { text } from './text.ts'

const hourOf = (point: string): string => `${point.slice(11)}:00`
const dayOf = (point: string): string => point.slice(0, 10)

/** Hours of one day need no day beside them. */
const hourTexts = (isOneDay: boolean) => ({
  head: text.hour,
  short: (point: string): string => (isOneDay ? hourOf(point) : `${dayText(dayOf(point))}, ${hourOf(point)}`),
  long: (point: string): string => `${longDayText(dayOf(point))}, ${hourOf(point)}`,
})

/** The course of one figure over the span. */
export function UsageChart({ activity, metric }: { readonly activity: Activity; readonly metric: Metric }) {
  if (metric === 'p95' && activity.latency === null) return <p className="quiet">{text.noLatency}</p>
  const isHours = activity.group === 'hour'
  const points = pointsOf(activity, activity.group)
  const series = seriesOf(activity, metric, points)
  if (series.length === 0) return <p className="quiet">{text.chartEmpty(text.metrics[metric])}</p>
  return (
    <StackedBars
      label={text.metrics[metric]}
      days={points}
      series={series}
      format={formats[metric].format}
      formatAxis={formats[metric].formatAxis}
      isSum={metric !== 'p95'}
      {...(isHours ? { points: hourTexts(activity.from === activity.to) } : {})}
    />
  )
}
