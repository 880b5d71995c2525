import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { addressOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { useNow } from '../../ui/data/time.tsx'
import { istDay } from '../../ui/format/dates.ts'
import { Button, LinkButton } from '../../ui/forms/button.tsx'
import { Segmented } from '../../ui/forms/choices.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { FilterBar } from '../activity/filter-bar.tsx'
import { type ActivitySearch, type Filters, filtersOf, given, spanSearchOf } from '../activity/filters.ts'
import { type Span, spanBefore, spanOf, spanText } from '../activity/span.ts'
import type { Activity } from './figures.ts'
import { MetricCards } from './metric-cards.tsx'
import { type Group, groups, type Metric } from './metrics.ts'
import { mayBeHours, queryOf, type UsageSearch } from './search.ts'
import { ShareTable } from './share-table.tsx'
import { text } from './text.ts'
import './usage.css'
import { UsageChart } from './usage-chart.tsx'

const route = getRouteApi('/usage')

/** Returns the figure that the address names. Where all calls are free, a chart of money would be empty. */
const metricOf = ({ metric }: UsageSearch, { totals }: Activity): Metric => metric ?? (totals.value_inr === 0 ? 'calls' : 'value')

/** What was used in a span of days: figures, their course, and who or what used them. */
export function UsagePage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const today = istDay(useNow())
  const span = spanOf(search, today)
  const before = spanBefore(span)
  const filters = filtersOf(search)
  const query = queryOf(search, today)
  const canBeHours = mayBeHours(span, today)
  const activity = useQuery({ ...apiQuery('activity', { query }), placeholderData: keepPreviousData })
  const earlier = useQuery(apiQuery('activity', { query: { ...before, ...filters } }))
  const show = (changes: Partial<UsageSearch>): void => void navigate({ search: given({ ...search, ...changes }), replace: true, resetScroll: false })
  const filter = (next: ActivitySearch, list = search.group): void => {
    const { metric, unit } = search
    void navigate({ search: { ...next, ...given({ metric, group: list, unit }) }, resetScroll: false })
  }
  const isFiltered = Object.keys(filters).length > 0
  const hasNothing = activity.data !== undefined && activity.data.totals.requests === 0
  return (
    <Page title={text.title} intro={text.intro}>
      <FilterBar search={search} today={today} onChange={next => filter(next)}>
        <div className="push-end usage-acts">
          <LinkButton icon="list" to="/calls" search={{ ...spanSearchOf(search), ...filters }}>
            {text.allCalls}
          </LinkButton>
          <a className="button button-plain button-md" href={addressOf('activity', { query: { ...query, format: 'csv' } })} download title={text.csvHelp}>
            <Icon name="download" />
            {text.csv}
          </a>
        </div>
      </FilterBar>
      {hasNothing ? (
        <Panel>
          <Nothing span={span} isFiltered={isFiltered} onClear={() => filter(spanSearchOf(search))} />
        </Panel>
      ) : (
        // The figures of the address before stay until the new ones are read, and look like it.
        <div className="usage-body" aria-busy={activity.isPlaceholderData}>
          <Panel isFlush>
            <Loaded query={activity} skeleton={<Skeleton lines={1} height={400} />}>
              {data => <Figures data={data} before={earlier.data} beforeSpan={before} canBeHours={canBeHours} search={search} onShow={show} />}
            </Loaded>
          </Panel>
          {/* Figures and shares are of one reply, so that the page says once that it failed. */}
          {(activity.data !== undefined || !activity.isError) && (
            <Panel
              title={text.table}
              isFlush
              actions={
                <Segmented
                  label={text.group}
                  value={search.group ?? 'model'}
                  onChange={value => show({ group: value })}
                  options={groups.map(value => ({ value, label: text.groups[value] }))}
                />
              }
            >
              <Loaded query={activity} skeleton={<Skeleton lines={5} />}>
                {data => (
                  <ShareTable
                    activity={data}
                    group={search.group ?? 'model'}
                    metric={metricOf(search, data)}
                    search={search}
                    onFilter={one => filter({ ...spanSearchOf(search), ...filters, ...one }, groupAfter(one))}
                  />
                )}
              </Loaded>
            </Panel>
          )}
        </div>
      )}
    </Page>
  )
}

/** Returns what the table lists after a filter. The list of one person would be that person again, so it becomes the models that the person used. */
const groupAfter = (one: Filters): Group => (one.model === undefined ? 'model' : 'agent')

interface FiguresProps {
  readonly data: Activity
  readonly before: Activity | undefined
  readonly beforeSpan: Span
  readonly canBeHours: boolean
  readonly search: UsageSearch
  readonly onShow: (changes: Partial<UsageSearch>) => void
}

function Figures({ data, before, beforeSpan, canBeHours, search, onShow }: FiguresProps) {
  const metric = metricOf(search, data)
  const titles = metric === 'p95' ? { day: text.byDayOnly, hour: text.byHourOnly } : { day: text.byDay, hour: text.byHour }
  return (
    <>
      <MetricCards activity={data} before={before} beforeDays={spanText(beforeSpan)} value={metric} onChange={value => onShow({ metric: value })} />
      <div className="usage-chart">
        <div className="usage-chart-head">
          <div>
            <h2>
              {text.metrics[metric]} · {titles[data.group].toLowerCase()}
            </h2>
            <p className="quiet">{text.means[metric]}</p>
          </div>
          {canBeHours && (
            <Segmented
              label={text.unit}
              value={data.group}
              onChange={unit => onShow({ unit })}
              options={(['day', 'hour'] as const).map(value => ({ value, label: text.units[value] }))}
            />
          )}
        </div>
        <UsageChart activity={data} metric={metric} />
      </div>
    </>
  )
}

function Nothing({ span, isFiltered, onClear }: { readonly span: Span; readonly isFiltered: boolean; readonly onClear: () => void }) {
  return (
    <Empty
      icon="usage"
      title={text.emptyTitle(spanText(span))}
      action={
        isFiltered ? (
          <Button onClick={onClear}>{text.clear}</Button>
        ) : (
          <LinkButton look="primary" icon="play" to="/start">
            {text.start}
          </LinkButton>
        )
      }
    >
      {isFiltered ? text.emptyFiltered : text.empty}
    </Empty>
  )
}
