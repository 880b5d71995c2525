import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { apiQuery } from '../../../api/queries.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { useOwners } from '../../../app/whom-to-ask.ts'
import { Tag } from '../../../ui/data/status.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { ErrorPanel } from '../../../ui/layout/error-panel.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Tabs } from '../../../ui/layout/tabs.tsx'
import { Menu, MenuItem } from '../../../ui/overlays/menu.tsx'
import { StepsShown } from '../../steps/step-list.tsx'
import { AlertsTab } from '../alerts/alerts-tab.tsx'
import '../collections.css'
import { ImportDialog } from '../import-dialog.tsx'
import { Readme } from '../readme.tsx'
import { type OneSearch, type OneTab, oneTabs, type WholeCollection } from '../search.ts'
import { oneText, text } from '../text.ts'
import { useFork, useStar } from '../use-collections.ts'
import { DeleteCollection, PublishCollection, useUnpublish } from './collection-dialogs.tsx'
import { EditTab } from './edit-tab.tsx'
import { HealthTab } from './health-tab.tsx'
import { VersionsTab } from './versions-tab.tsx'

const route = getRouteApi('/collections/$id')

/** One collection of the organisation: its steps, its versions, how they do, and alerts. */
export function CollectionPage() {
  const { id } = route.useParams()
  const collection = useQuery(apiQuery('getCollection', { path: { id } }))
  if (collection.data !== undefined) return <KnownCollection key={collection.data.id} collection={collection.data} />
  return (
    <Page title={text.title} above={<Crumbs />}>
      <Panel>
        {!collection.isError ? (
          <Skeleton lines={5} height={28} />
        ) : apiErrorOf(collection.error).status === 404 ? (
          <Empty icon="folder" title={text.unknownTitle}>
            {text.unknown}
          </Empty>
        ) : (
          <ErrorPanel error={collection.error} onRetry={() => void collection.refetch()} />
        )}
      </Panel>
    </Page>
  )
}

function Crumbs() {
  return (
    <nav className="crumbs" aria-label="Pages above">
      <Link to="/collections">{text.back}</Link>
    </nav>
  )
}

function KnownCollection({ collection }: { readonly collection: WholeCollection }) {
  const { tab = 'steps', version } = route.useSearch()
  const navigate = route.useNavigate()
  const isAdmin = hasRole(useMe(), 'admin')
  const owners = useOwners()
  const show = useCallback((search: OneSearch) => void navigate({ search, replace: true, resetScroll: false }), [navigate])
  return (
    <Page title={collection.name} above={<Crumbs />} intro={<Facts collection={collection} />} actions={<Acts collection={collection} isAdmin={isAdmin} />}>
      <Tabs
        label={collection.name}
        value={tab}
        onChange={next => show(next === 'steps' ? {} : { tab: next as Exclude<OneTab, 'steps'> })}
        tabs={oneTabs.map(id => ({ id, label: oneText.tabs[id] }))}
      >
        <div className="collections-tab">
          {tab === 'steps' && (isAdmin ? <EditTab collection={collection} /> : <ReadTab collection={collection} ask={text.membersOnly(owners)} />)}
          {tab === 'versions' && (
            <VersionsTab
              collection={collection}
              isAdmin={isAdmin}
              compared={version}
              onCompare={next => show({ tab: 'versions', ...(next === undefined ? {} : { version: next }) })}
            />
          )}
          {tab === 'health' && <HealthTab collection={collection} isAdmin={isAdmin} ask={text.membersOnly(owners)} />}
          {tab === 'alerts' && <AlertsTab collection={collection} isAdmin={isAdmin} ask={text.membersOnly(owners)} />}
        </div>
      </Tabs>
    </Page>
  )
}

function Facts({ collection }: { readonly collection: WholeCollection }) {
  const { slug, model, version, stars, forks, forked_from: source, updated_at: at } = collection
  return (
    <span className="collection-facts">
      <Tag>{collection.public ? text.isPublic : text.isPrivate}</Tag>
      <code>{model}</code>
      <span>{text.version(version)}</span>
      <span>{text.stars(stars)}</span>
      <span>{text.forks(forks)}</span>
      {source !== null && <span>{text.forkedFrom(source)}</span>}
      <code>{slug}</code>
      <Time at={at} />
    </span>
  )
}

function Acts({ collection, isAdmin }: { readonly collection: WholeCollection; readonly isAdmin: boolean }) {
  const [asked, setAsked] = useState<'import' | 'publish' | 'delete' | null>(null)
  const toOne = useNavigate()
  const star = useStar(collection.slug)
  const fork = useFork(collection.slug, ({ id }) => void toOne({ to: '/collections/$id', params: { id: String(id) } }))
  const unpublish = useUnpublish(collection)
  const close = (): void => setAsked(null)
  return (
    <>
      {isAdmin && (
        <Button look="primary" icon="split" onClick={() => setAsked('import')}>
          {text.import}
        </Button>
      )}
      <Button icon={collection.starred ? 'close' : 'good'} isBusy={star.isPending} onClick={() => star.mutate(!collection.starred)}>
        {collection.starred ? text.unstar : text.star}
      </Button>
      <Menu label={text.more} trigger={<Icon name="more" />}>
        <MenuItem icon="copy" onClick={() => fork.mutate()}>
          {text.forkAct}
        </MenuItem>
        {isAdmin && (
          <MenuItem icon="share" onClick={() => (collection.public ? unpublish.mutate() : setAsked('publish'))}>
            {collection.public ? text.unpublish : `${text.publish}…`}
          </MenuItem>
        )}
        {isAdmin && (
          <MenuItem icon="trash" isDanger onClick={() => setAsked('delete')}>
            {text.remove}…
          </MenuItem>
        )}
      </Menu>
      {asked === 'import' && <ImportDialog collection={collection} isOfOthers={false} onClose={close} />}
      {asked === 'publish' && <PublishCollection collection={collection} onClose={close} />}
      {asked === 'delete' && <DeleteCollection collection={collection} onClose={close} />}
    </>
  )
}

/** The steps and the readme for a person who may not change them. */
function ReadTab({ collection: { steps, readme_md: readme }, ask }: { readonly collection: WholeCollection; readonly ask: string }) {
  return (
    <div className="columns-2">
      <Panel title={text.steps}>
        <div className="stack-3">
          <StepsShown steps={steps} />
          <p className="quiet">{ask}</p>
        </div>
      </Panel>
      <Panel title={text.readme}>
        <Readme markdown={readme} headingAbove={2} />
      </Panel>
    </div>
  )
}
