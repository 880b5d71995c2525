import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { apiQuery } from '../../../api/queries.ts'
import { StackedBars } from '../../../ui/charts/stacked-bars.tsx'
import { useNow } from '../../../ui/data/time.tsx'
import { istDay } from '../../../ui/format/dates.ts'
import { count, money, shortCount, shortMoney } from '../../../ui/format/numbers.ts'
import { Segmented } from '../../../ui/forms/choices.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { chartSpan, seriesOf } from '../../overview/figures.ts'
import { text } from './text.ts'

type Metric = 'spend' | 'calls'

/** The last 30 Indian days of an agent, by model. */
export function SpendChart({ agentId }: { readonly agentId: number }) {
  const [chosen, setChosen] = useState<Metric | null>(null)
  const span = chartSpan(istDay(useNow()))
  const activity = useQuery(apiQuery('activity', { query: { agent_id: agentId, from: span[0] ?? '', to: span.at(-1) ?? '' } }))
  // Where all calls are free, a chart of money would be empty.
  const metric = chosen ?? (activity.data?.totals.value_inr === 0 ? 'calls' : 'spend')
  return (
    <Panel
      title={metric === 'spend' ? text.chart : text.callsChart}
      note={text.chartNote}
      actions={
        <Segmented
          label="What the chart counts"
          value={metric}
          onChange={setChosen}
          options={[
            { value: 'spend', label: text.spend },
            { value: 'calls', label: text.calls },
          ]}
        />
      }
    >
      <Loaded query={activity} skeleton={<Skeleton lines={1} height={220} />}>
        {data => {
          const series = seriesOf(data, metric, span)
          if (series.length === 0) return <p className="quiet">{text.chartEmpty}</p>
          const [format, formatAxis] = metric === 'spend' ? [money, shortMoney] : [count, shortCount]
          return <StackedBars label={text[metric]} days={span} series={series} format={format} formatAxis={formatAxis} />
        }}
      </Loaded>
    </Panel>
  )
}
