import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { apiErrorOf } from '../../api/api-error.ts'
import { api } from '../../api/call.ts'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Empty } from '../../ui/layout/empty.tsx'
import { Boundary, ErrorPanel, InlineError } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import { NewFile } from './dialogs/new-file.tsx'
import { FolderView } from './folder/folder-view.tsx'
import { RootView } from './folder/root-view.tsx'
import './edit.css'
import './memory.css'
import './object.css'
import { ObjectView } from './object/object-view.tsx'
import { folderOf, isWritable, type Places } from './places.ts'
import { SearchView } from './search/search-view.tsx'
import type { MemorySearch } from './search-params.ts'
import './small-screens.css'
import { text } from './text.ts'
import { MemoryTree } from './tree/memory-tree.tsx'
import { Quota } from './tree/quota.tsx'
import { SearchBox } from './tree/search-box.tsx'
import { memoryChanged, useAtPath, usePlaces } from './use-memory.ts'

const route = getRouteApi('/memory/$')

/** The memory of the organisation, as far as the person may read it. The path in the address is the key of an object or of a folder. */
export function MemoryPage() {
  const { _splat: path = '' } = route.useParams()
  const search = route.useSearch()
  const { query, places } = usePlaces()
  if (places !== undefined) return <Memory places={places} path={path} search={search} />
  const isOff = query.isError && apiErrorOf(query.error).code === 'memory_not_configured'
  return (
    <Page title={text.title} intro={text.intro}>
      <Panel>
        {isOff ? (
          <Empty icon="memory" title={text.offTitle} action={<SetUp />} command={text.offCommand}>
            {text.off}
          </Empty>
        ) : query.isError ? (
          <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
        ) : (
          <Skeleton lines={6} />
        )}
      </Panel>
    </Page>
  )
}

/** Lets an owner or admin keep the memory in a folder of the gateway. A bucket needs its place and its keys, which the guide explains. */
function SetUp() {
  const me = useMe()
  const useFolder = useMutation({ mutationFn: () => api('putStoreConsole', { body: { store: 'folder' } }), onSuccess: memoryChanged })
  if (!hasRole(me, 'admin')) return null
  return (
    <>
      <Button look="primary" icon="folder" isBusy={useFolder.isPending} onClick={() => useFolder.mutate()}>
        {text.useFolder}
      </Button>
      {useFolder.error && <InlineError error={apiErrorOf(useFolder.error)} />}
    </>
  )
}

interface MemoryProps {
  readonly places: Places
  readonly path: string
  readonly search: MemorySearch
}

function Memory({ places, path, search }: MemoryProps) {
  const navigate = useNavigate()
  const found = useAtPath(places, path, search.new === true)
  const [isNew, setNew] = useState(false)
  const open = useCallback((to: string) => void navigate({ to: '/memory/$', params: { _splat: to }, search: {} }), [navigate])
  const isFolder = found.at === 'folder'
  const folder = isFolder && path !== '' ? `${path}/` : folderOf(path)
  usePageCommands(useMemo(() => [{ id: 'new-memory', label: text.newFile, group: text.title, icon: 'plus' as const, keys: 'n', run: () => setNew(true) }], []))
  const isWide = search.from !== undefined && search.q === undefined
  return (
    <div className={['memory', path === '' && search.q === undefined ? 'memory-top' : '', isWide ? 'memory-wide' : ''].join(' ')}>
      <section className="memory-side" aria-label={text.tree}>
        <SearchBox places={places} search={search} folder={folder} />
        <div className="memory-tree">
          <Boundary>
            <MemoryTree places={places} path={path} isFolder={isFolder} onOpen={open} />
          </Boundary>
        </div>
        <Quota />
      </section>
      <div className="memory-main">
        <Boundary key={path}>
          <View places={places} path={path} search={search} found={found} onNew={() => setNew(true)} />
        </Boundary>
      </div>
      {isNew && <NewFile places={places} folder={isWritable(folder) ? folder : places.own} onClose={() => setNew(false)} />}
    </div>
  )
}

interface ViewProps extends MemoryProps {
  readonly found: ReturnType<typeof useAtPath>
  readonly onNew: () => void
}

/** What the path shows. */
function View({ places, path, search, found, onNew }: ViewProps) {
  if (search.q !== undefined) return <SearchView places={places} search={search} q={search.q} />
  if (path === '') return <RootView places={places} onNew={onNew} />
  if (found.at === 'folder') return <FolderView places={places} path={path} onNew={onNew} />
  if (found.at === 'object') return <ObjectView places={places} path={path} search={search} />
  return (
    <Page title={text.title}>
      <Panel>{found.failed ? <ErrorPanel error={found.failed.error} onRetry={() => void found.failed?.refetch()} /> : <Skeleton lines={6} />}</Panel>
    </Page>
  )
}
