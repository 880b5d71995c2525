import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { Status, Tag } from '../../ui/data/status.tsx'
import type { Column } from '../../ui/data/table.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { shortCount } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Check } from '../../ui/forms/check.tsx'
import { Choice, SearchBox } from '../../ui/forms/list-filters.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { ModelPeek } from './model-peek.tsx'
import './models.css'
import { priceText } from './prices.ts'
import { chosenModels, type ModelRow, type ModelsSearch, modelKinds } from './search.ts'
import { text } from './text.ts'

const route = getRouteApi('/models')
type Changes = { [K in keyof ModelsSearch]?: ModelsSearch[K] | undefined }

/** The models of the catalog. One of them can be open beside the list. */
export function ModelsPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const models = useQuery({ ...apiQuery('listModels'), select: ({ data }) => data })
  const own = useQuery({ ...apiQuery('listProviderKeys'), retry: false })
  const ownKeys = useMemo(() => new Set((own.data?.keys ?? []).map(({ provider }) => provider)), [own.data])
  const show = useCallback(
    (changes: Changes, replace = false) =>
      void navigate({
        search: before => Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined)),
        replace,
        resetScroll: false,
      }),
    [navigate],
  )
  const rows = models.data && chosenModels(models.data, ownKeys, search)
  return (
    <Page title={text.title} intro={text.intro}>
      <ModelFilters search={search} onChange={show} total={rows && models.data ? text.total(rows.length, models.data.length) : ''} />
      <Panel isFlush>
        <Loaded query={models} skeleton={<Skeleton lines={8} height={28} />}>
          {() =>
            rows === undefined || rows.length === 0 ? (
              <Empty
                icon="search"
                title={text.noneTitle}
                action={<Button onClick={() => show({ q: undefined, kind: undefined, ready: undefined, india: undefined }, true)}>{text.clear}</Button>}
              >
                {text.none}
              </Empty>
            ) : (
              <VirtualTable
                label={text.title}
                columns={columns}
                rows={rows}
                rowKey={({ model }) => model.id}
                onOpen={({ model }) => show({ model: model.id })}
                isOpen={({ model }) => model.id === search.model}
                onMore={null}
                isLoadingMore={false}
              />
            )
          }
        </Loaded>
      </Panel>
      {search.model !== undefined && models.data && (
        <ModelPeek
          key={search.model}
          model={models.data.find(({ id }) => id === search.model) ?? null}
          ownKeys={ownKeys}
          onClose={() => show({ model: undefined })}
        />
      )}
    </Page>
  )
}

interface ModelFiltersProps {
  readonly search: ModelsSearch
  readonly onChange: (changes: Changes, replace: boolean) => void
  readonly total: string
}

function ModelFilters({ search: { q, kind, ready, india }, onChange, total }: ModelFiltersProps) {
  const find = useCallback((typed: string) => onChange({ q: typed === '' ? undefined : typed }, true), [onChange])
  return (
    <search className="list-filters model-filters">
      <SearchBox label={text.search} hint={text.searchHint} value={q ?? ''} onChange={find} />
      <Choice label={text.kind} value={kind ?? ''} onChange={value => onChange({ kind: modelKinds.find(one => one === value) }, true)}>
        <option value="">{text.anyKind}</option>
        {modelKinds.map(one => (
          <option key={one} value={one}>
            {text.kinds[one]}
          </option>
        ))}
      </Choice>
      <Check label={text.ready} isChecked={ready === true} onChange={isChecked => onChange({ ready: isChecked ? true : undefined }, true)} />
      <Check label={text.india} isChecked={india === true} onChange={isChecked => onChange({ india: isChecked ? true : undefined }, true)} />
      <p className="quiet model-total" role="status">
        {total}
      </p>
    </search>
  )
}

const columns: readonly Column<ModelRow>[] = [
  {
    key: 'model',
    head: text.columns.model,
    isName: true,
    cell: ({ model }) => (
      <span className="cell-stack">
        <code>{model.id}</code>
        <span className="quiet">{model.kind === 'chat' ? model.owned_by : `${model.owned_by} · ${text.kinds[model.kind].toLowerCase()}`}</span>
      </span>
    ),
  },
  {
    key: 'state',
    head: text.columns.state,
    cell: ({ callable: { tone, icon, name, means } }) => (
      <Status tone={tone} icon={icon} title={means}>
        {name}
      </Status>
    ),
  },
  { key: 'price', head: text.columns.price, align: 'end', cell: ({ model }) => <span className="tabular nowrap">{priceText(model)}</span> },
  {
    key: 'context',
    head: text.columns.context,
    align: 'end',
    isOnCards: false,
    cell: ({ model: { context_length: length } }) =>
      length === null ? <span className="quiet">–</span> : <span className="tabular">{shortCount(length)}</span>,
  },
  {
    key: 'abilities',
    head: text.columns.abilities,
    isOnCards: false,
    cell: ({ model: { tools, modalities, reasoning_efforts: efforts = [] } }) => (
      <span className="model-tags">
        {tools && <Tag>{text.tools}</Tag>}
        {modalities.includes('image') && <Tag>{text.pictures}</Tag>}
        {(efforts.length > 0 || modalities.includes('reasoning')) && <Tag>{text.reasoning}</Tag>}
      </span>
    ),
  },
  {
    key: 'place',
    head: text.columns.place,
    isOnCards: false,
    cell: ({ model: { routes, kind } }) =>
      kind === 'virtual' ? (
        <span className="quiet">–</span>
      ) : (
        <Tag>{routes.some(({ residency }) => residency === 'india') ? text.inIndia : text.worldwide}</Tag>
      ),
  },
]
