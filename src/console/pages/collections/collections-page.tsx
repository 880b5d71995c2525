import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useCallback, useMemo } from 'react'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { useOwners } from '../../app/whom-to-ask.ts'
import { Tag } from '../../ui/data/status.tsx'
import { type Column, Table } from '../../ui/data/table.tsx'
import { Time } from '../../ui/data/time.tsx'
import { VirtualTable } from '../../ui/data/virtual-table.tsx'
import { count } from '../../ui/format/numbers.ts'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { stepText } from '../steps/draft-steps.ts'
import './collections.css'
import { CreateCollection } from './create-collection.tsx'
import { PublicPeek } from './public-peek.tsx'
import { type Collection, type CollectionsSearch, collectionsTabs } from './search.ts'
import { text } from './text.ts'
import { useCollections, usePublicCollections } from './use-collections.ts'

const route = getRouteApi('/collections')

/** The collections of the organisation, and the public ones of the gateway. */
export function CollectionsPage() {
  const { tab = 'own', slug, new: isNew } = route.useSearch()
  const navigate = route.useNavigate()
  const toOne = useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const show = useCallback((search: CollectionsSearch) => void navigate({ search, resetScroll: false }), [navigate])
  const create = useCallback(() => show({ new: true }), [show])
  const open = (id: number): void => void toOne({ to: '/collections/$id', params: { id: String(id) } })
  usePageCommands(
    useMemo(
      () => (isAdmin ? [{ id: 'new-collection', label: text.create, group: text.title, icon: 'plus' as const, keys: 'n', run: create }] : []),
      [isAdmin, create],
    ),
  )
  const createButton = isAdmin && (
    <Button look="primary" icon="plus" onClick={create}>
      {text.create}
    </Button>
  )
  return (
    <Page title={text.title} intro={isAdmin ? text.intro : `${text.intro} ${text.introAsk(owners)}`} actions={createButton}>
      <Tabs
        label={text.title}
        value={tab}
        onChange={next => show(next === 'public' ? { tab: 'public' } : {})}
        tabs={collectionsTabs.map(id => ({ id, label: text.tabs[id] }))}
      >
        <div className="collections-tab">
          {tab === 'own' ? (
            <OwnTab createButton={createButton} onOpen={open} />
          ) : (
            <PublicTab opened={slug} onOpen={next => show({ tab: 'public', slug: next })} />
          )}
        </div>
      </Tabs>
      {slug !== undefined && <PublicPeek key={slug} slug={slug} isAdmin={isAdmin} owners={owners} onFork={open} onClose={() => show({ tab: 'public' })} />}
      {isNew && isAdmin && <CreateCollection onClose={() => show({})} onMade={open} />}
    </Page>
  )
}

function OwnTab({ createButton, onOpen }: { readonly createButton: ReactNode; readonly onOpen: (id: number) => void }) {
  const collections = useCollections()
  return (
    <Panel isFlush>
      <Loaded query={collections} skeleton={<Skeleton lines={4} height={28} />}>
        {rows =>
          rows.length === 0 ? (
            <Empty icon="folder" title={text.emptyTitle} action={createButton}>
              {text.empty}
            </Empty>
          ) : (
            <VirtualTable
              label={text.title}
              columns={ownColumns}
              rows={rows}
              rowKey={({ id }) => id}
              onOpen={({ id }) => onOpen(id)}
              onMore={collections.hasNextPage ? () => void collections.fetchNextPage() : null}
              isLoadingMore={collections.isFetchingNextPage}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

function PublicTab({ opened, onOpen }: { readonly opened: string | undefined; readonly onOpen: (slug: string) => void }) {
  const collections = usePublicCollections()
  return (
    <Panel isFlush>
      <Loaded query={collections} skeleton={<Skeleton lines={4} height={28} />}>
        {rows =>
          rows.length === 0 ? (
            <Empty icon="folder" title={text.publicEmptyTitle}>
              {text.publicEmpty}
            </Empty>
          ) : (
            <Table
              label={text.tabs.public}
              columns={publicColumns}
              rows={rows}
              rowKey={({ slug }) => slug}
              onOpen={({ slug }) => onOpen(slug)}
              isOpen={({ slug }) => slug === opened}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const publicColumns: readonly Column<Collection>[] = [
  {
    key: 'name',
    head: text.columns.name,
    isName: true,
    cell: ({ name, slug }) => (
      <span className="cell-stack">
        <span>{name}</span>
        <code className="quiet">{slug}</code>
      </span>
    ),
  },
  { key: 'model', head: text.columns.model, cell: ({ model }) => <code>{model}</code> },
  { key: 'steps', head: text.columns.steps, isOnCards: false, cell: ({ steps }) => <span className="collection-line">{steps.map(stepText).join(' → ')}</span> },
  { key: 'stars', head: text.columns.stars, align: 'end', cell: ({ stars }) => <span className="tabular">{count(stars)}</span> },
  { key: 'updated', head: text.columns.updated, align: 'end', isOnCards: false, cell: ({ updated_at: at }) => <Time at={at} /> },
]

const ownColumns: readonly Column<Collection>[] = [
  ...publicColumns.slice(0, 3),
  { key: 'state', head: text.columns.state, cell: collection => <Tag>{collection.public ? text.isPublic : text.isPrivate}</Tag> },
  ...publicColumns.slice(3),
]
