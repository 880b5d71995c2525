import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { apiQuery } from '../../api/queries.ts'
import { useMe } from '../../app/me.tsx'
import { StackedBars } from '../../ui/charts/stacked-bars.tsx'
import { useNow } from '../../ui/data/time.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { count, money, shortCount, shortMoney } from '../../ui/format/numbers.ts'
import { LinkButton } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { ErrorPanel } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Attention } from './attention.tsx'
import { BudgetPanel } from './budget-panel.tsx'
import { Cards } from './cards.tsx'
import { type Activity, chartSpan, seriesOf, spanOf } from './figures.ts'
import './overview.css'
import { type Metric, metrics } from './metric.ts'
import { RecentErrors } from './recent-errors.tsx'
import { text } from './text.ts'
import { TopAgents, TopKeys, TopModels, TopPeople } from './tops.tsx'

const route = getRouteApi('/')

/** The landing page: sums of the month, what needs a person, and who uses most. Nothing on it grows with the number of keys or calls. */
export function OverviewPage() {
  const me = useMe()
  const today = istDay(useNow())
  const activity = useQuery(apiQuery('activity', { query: spanOf(today) }))
  const isUnused = activity.data !== undefined && activity.data.totals.requests === 0
  // Cards, chart and tables are of one reply, so that the page says once that it failed.
  const isFailed = activity.isError && activity.data === undefined
  const hasFigures = !isUnused && !isFailed
  return (
    <Page title={text.title} intro={text.intro(me.org.name)}>
      {isUnused ? (
        <Panel>
          <Empty
            icon="terminal"
            title={text.noCalls}
            action={
              <>
                <LinkButton look="primary" icon="play" to="/start">
                  {text.start}
                </LinkButton>
                <LinkButton icon="key" to="/keys" search={{ new: true }}>
                  {text.createKey}
                </LinkButton>
              </>
            }
            command={text.firstCall(location.origin)}
          >
            {text.noCallsHint}
          </Empty>
        </Panel>
      ) : isFailed ? (
        <Panel>
          <ErrorPanel error={activity.error} onRetry={() => void activity.refetch()} />
        </Panel>
      ) : (
        <Loaded query={activity} skeleton={<CardsSkeleton />}>
          {data => <Cards activity={data} today={today} />}
        </Loaded>
      )}
      <Attention />
      {hasFigures && <Chart activity={activity.data} today={today} />}
      {hasFigures && (
        <div className="columns-2">
          <Panel title={text.models} isFlush>
            <Loaded query={activity}>{data => <TopModels activity={data} />}</Loaded>
          </Panel>
          <Panel title={text.agents} isFlush>
            <Loaded query={activity}>{data => <TopAgents activity={data} />}</Loaded>
          </Panel>
          <Panel title={text.people} isFlush>
            <Loaded query={activity}>{data => <TopPeople activity={data} />}</Loaded>
          </Panel>
          <Panel title={text.keys} isFlush>
            <Loaded query={activity}>{data => <TopKeys activity={data} />}</Loaded>
          </Panel>
        </div>
      )}
      {!isUnused && <RecentErrors />}
      <BudgetPanel />
    </Page>
  )
}

function CardsSkeleton() {
  return (
    <div className="cards">
      {['spend', 'calls', 'errors', 'latency'].map(name => (
        <div key={name} className="card">
          <Skeleton lines={3} />
        </div>
      ))}
    </div>
  )
}

const formats: Readonly<Record<Metric, (value: number) => string>> = { spend: shortMoney, calls: shortCount, tokens: shortCount }
const exactFormats: Readonly<Record<Metric, (value: number) => string>> = { spend: money, calls: count, tokens: count }

function Chart({ activity, today }: { readonly activity: Activity | undefined; readonly today: string }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  // Where all calls are free, a chart of money would be empty.
  const isFree = activity?.totals.value_inr === 0
  const metric = search.metric ?? (isFree ? 'calls' : 'spend')
  const span = chartSpan(today)
  const series = activity === undefined ? [] : seriesOf(activity, metric, span)
  return (
    <Panel
      title={text.chart}
      note="Last 30 days"
      actions={
        <Segmented
          label="What the chart counts"
          value={metric}
          onChange={value => void navigate({ search: { metric: value }, replace: true, resetScroll: false })}
          options={metrics.map(value => ({ value, label: text.metrics[value] }))}
        />
      }
    >
      {activity === undefined ? (
        <Skeleton lines={1} height={260} />
      ) : series.length === 0 ? (
        <p className="quiet">{text.chartEmpty}</p>
      ) : (
        <StackedBars label={text.metrics[metric]} days={span} series={series} format={exactFormats[metric]} formatAxis={formats[metric]} />
      )}
    </Panel>
  )
}
