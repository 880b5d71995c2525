import { type PointerEvent, useState } from 'react'
import { dayText, longDayText } from '../format/dates.ts'
import { Button } from '../forms/button.tsx'
import { roundTop } from './round-top.ts'
import type { Series } from './series.ts'

interface StackedBarsProps {
  readonly label: string
  /** The days, or points of another kind that `points` writes. */
  readonly days: readonly string[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** The format of the axis, which has little room. Default: `format`. */
  readonly formatAxis?: (value: number) => string
  /** How points that are not days are written. */
  readonly points?: PointTexts
  /** False for figures that do not add up, such as a percentile. Default: true. */
  readonly isSum?: boolean
}

interface PointTexts {
  /** The head of the column of points. */
  readonly head: string
  readonly short: (point: string) => string
  readonly long: (point: string) => string
}

const dayTexts: PointTexts = { head: 'Day', short: dayText, long: longDayText }

/** Up to this number of bars, each has its name below it. */
const namedBarsMax = 8
const gap = 0.22
const ticks = 4

const fillOf = (index: number, { isRest = false }: Series): string => (isRest ? 'var(--series-rest)' : `var(--series-${index + 1})`)
const totalOf = (series: readonly Series[], day: number): number => series.reduce((sum, { values }) => sum + (values[day] ?? 0), 0)

/** Days as stacked bars. The same figures are there as a table, and a sentence sums them up for a screen reader. */
export function StackedBars({ label, days, series, format, formatAxis = format, points = dayTexts, isSum = true }: StackedBarsProps) {
  const [isTable, setTable] = useState(false)
  const [at, setAt] = useState<number | null>(null)
  const totals = days.map((_, day) => totalOf(series, day))
  const top = roundTop(Math.max(...totals, 0))
  const all = totals.reduce((sum, value) => sum + value, 0)
  const busiest = totals.indexOf(Math.max(...totals))
  const total = isSum ? `${format(all)} in total, most on` : 'highest on'
  const summary = `${label}, ${points.short(days[0] ?? '')} to ${points.short(days.at(-1) ?? '')}: ${total} ${points.short(days[busiest] ?? '')} with ${format(totals[busiest] ?? 0)}.`
  const onMove = (event: PointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget.getBoundingClientRect()
    setAt(Math.max(0, Math.min(days.length - 1, Math.floor(((event.clientX - box.left) / box.width) * days.length))))
  }
  return (
    <figure className="bars">
      {isTable ? (
        <BarsTable label={label} days={days} series={series} format={format} points={points} />
      ) : (
        <div className="bars-chart">
          <div className="bars-axis" aria-hidden="true">
            {Array.from({ length: ticks + 1 }, (_, tick) => (top / ticks) * (ticks - tick)).map(value => (
              <span key={value}>{formatAxis(value)}</span>
            ))}
          </div>
          <div className="bars-plot" onPointerMove={onMove} onPointerLeave={() => setAt(null)}>
            <svg viewBox={`0 0 ${days.length} 100`} preserveAspectRatio="none" role="img" aria-label={summary}>
              {Array.from({ length: ticks + 1 }, (_, tick) => (tick / ticks) * 100).map(y => (
                <line key={y} x1="0" x2={days.length} y1={y} y2={y} vectorEffect="non-scaling-stroke" className="bars-line" />
              ))}
              {days.map((day, index) => (
                <DayBar key={day} index={index} series={series} top={top} isFaded={at !== null && at !== index} />
              ))}
            </svg>
            {at !== null && (
              <BarsTip title={points.long(days[at] ?? '')} position={(at + 0.5) / days.length} series={series} index={at} format={format} isSum={isSum} />
            )}
          </div>
          {days.length <= namedBarsMax ? (
            <div className="bars-days bars-days-each" aria-hidden="true">
              {days.map(day => (
                <span key={day}>{points.short(day)}</span>
              ))}
            </div>
          ) : (
            <div className="bars-days" aria-hidden="true">
              {[0, 0.25, 0.5, 0.75, 1].map(share => (
                <span key={share}>{points.short(days[Math.round(share * (days.length - 1))] ?? '')}</span>
              ))}
            </div>
          )}
        </div>
      )}
      <figcaption className="bars-foot">
        <ul className="bars-legend">
          {series.map((one, index) => (
            <li key={one.name}>
              <span className="swatch" style={{ background: fillOf(index, one) }} />
              {one.name}
            </li>
          ))}
        </ul>
        <Button size="sm" look="ghost" onClick={() => setTable(!isTable)}>
          {isTable ? 'Show as chart' : 'Show as table'}
        </Button>
      </figcaption>
    </figure>
  )
}

function DayBar({ index, series, top, isFaded }: { index: number; series: readonly Series[]; top: number; isFaded: boolean }) {
  let y = 100
  return (
    <g opacity={isFaded ? 0.45 : 1}>
      {series.map((one, order) => {
        const height = ((one.values[index] ?? 0) / top) * 100
        y -= height
        return height === 0 ? null : <rect key={one.name} x={index + gap / 2} width={1 - gap} y={y} height={height} style={{ fill: fillOf(order, one) }} />
      })}
    </g>
  )
}

interface TipProps {
  readonly title: string
  /** The middle of the bar, as a share of the width. */
  readonly position: number
  readonly series: readonly Series[]
  readonly index: number
  readonly format: (value: number) => string
  readonly isSum: boolean
}

function BarsTip({ title, position, series, index, format, isSum }: TipProps) {
  const shown = series.map((one, order) => ({ ...one, fill: fillOf(order, one), value: one.values[index] ?? 0 })).filter(({ value }) => value > 0)
  return (
    <div className={position > 0.6 ? 'bars-tip bars-tip-left' : 'bars-tip'} style={{ insetInlineStart: `${position * 100}%` }} aria-hidden="true">
      <p>{title}</p>
      {shown.map(({ name, fill, value }) => (
        <div key={name}>
          <span className="swatch" style={{ background: fill }} />
          <span>{name}</span>
          <span className="tabular">{format(value)}</span>
        </div>
      ))}
      {isSum && (
        <div className="bars-tip-total">
          <span>Total</span>
          <span className="tabular">{format(totalOf(series, index))}</span>
        </div>
      )}
    </div>
  )
}

function BarsTable({ label, days, series, format, points = dayTexts }: StackedBarsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must take the focus, so that keys can scroll it.
    <section className="bars-table" tabIndex={0} aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{points.head}</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" className="align-end">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day, index) => (
            <tr key={day}>
              <th scope="row">{points.short(day)}</th>
              {series.map(({ name, values }) => (
                <td key={name} className="align-end tabular">
                  {format(values[index] ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
