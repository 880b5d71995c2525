import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Button, LinkButton } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { EditView } from '../edit/edit-view.tsx'
import { CompareView } from '../history/compare-view.tsx'
import { HistoryView, versionName } from '../history/history-view.tsx'
import { isMarkdownName, mayEdit, nameOf, type Places } from '../places.ts'
import type { MemorySearch } from '../search-params.ts'
import { text } from '../text.ts'
import { type MemoryObject, memoryChanged, objectQuery, useVersions, type Version } from '../use-memory.ts'
import { Bytes } from './bytes.tsx'
import { ChangedNote, newerThan } from './changed-note.tsx'
import { ObjectActs } from './object-acts.tsx'
import { ObjectFacts } from './object-facts.tsx'
import { ObjectFrame } from './object-frame.tsx'
import { Rendered } from './rendered.tsx'
import { Source } from './source.tsx'

/** Longer texts are shown as they are written. */
const renderedCharsMax = 256 * 1024

interface ObjectViewProps {
  readonly places: Places
  readonly path: string
  readonly search: MemorySearch
}

/** An object in the view that the address names. */
export function ObjectView({ places, path, search }: ObjectViewProps) {
  if (search.view === 'edit') return <EditView places={places} path={path} isNew={search.new === true} />
  if (search.view === 'history' && search.from !== undefined) return <CompareView places={places} path={path} from={search.from} to={search.to ?? 'current'} />
  if (search.view === 'history') return <HistoryView places={places} path={path} />
  return <ReadView places={places} path={path} search={search} />
}

function ReadView({ places, path, search }: ObjectViewProps) {
  const me = useMe()
  const navigate = useNavigate()
  const object = useQuery(objectQuery(path))
  const versions = useVersions(path, object.data !== undefined)
  const mayWrite = mayEdit(path, hasRole(me, 'admin')) && typeof object.data?.text === 'string'
  const commands = useMemo(() => {
    const edit = (): void => void navigate({ to: '/memory/$', params: { _splat: path }, search: { view: 'edit' } })
    return mayWrite ? [{ id: 'edit-memory', label: text.editOne(nameOf(path)), group: text.title, icon: 'edit' as const, keys: 'e', run: edit }] : []
  }, [mayWrite, navigate, path])
  usePageCommands(commands)
  const view = search.view ?? 'read'
  const newer = object.data && !object.isFetching ? newerThan({ etag: object.data.etag, readAtMs: object.dataUpdatedAt }, versions) : null
  const isGone = object.isError && apiErrorOf(object.error).status === 404
  return (
    <ObjectFrame
      places={places}
      path={path}
      view={view}
      actions={
        object.data && (
          <>
            {mayWrite && (
              <LinkButton to={`/memory/${path.split('/').map(encodeURIComponent).join('/')}`} search={{ view: 'edit' }} icon="edit">
                {text.edit}
              </LinkButton>
            )}
            <ObjectActs places={places} object={object.data} />
          </>
        )
      }
      beside={object.data && <ObjectFacts object={object.data} versions={versions.data} hasMore={versions.hasNextPage} />}
    >
      {isGone ? (
        <Empty icon="file" title={text.nothingTitle}>
          {text.nothing}
        </Empty>
      ) : (
        <Loaded query={object} skeleton={<Skeleton lines={8} />}>
          {data => (
            <>
              {newer && <Newer path={path} newer={newer} shown={data} versions={versions.data ?? []} />}
              <Content object={data} isSource={view === 'source'} line={search.line ?? null} />
            </>
          )}
        </Loaded>
      )}
    </ObjectFrame>
  )
}

interface NewerProps {
  readonly path: string
  readonly newer: Version
  readonly shown: MemoryObject
  readonly versions: readonly Version[]
}

/** The news that somebody changed what is read, with the way to the new text and to what changed. */
function Newer({ path, newer, shown, versions }: NewerProps) {
  const from = versions.find(({ etag, how }) => how !== 'delete' && etag === shown.etag)
  return (
    <ChangedNote by={newer}>
      {from && newer.how !== 'delete' && (
        <Link
          to="/memory/$"
          params={{ _splat: path }}
          search={{ view: 'history', from: versionName(from), to: versionName(newer) }}
          className="button button-ghost button-sm"
        >
          {text.newer.changes}
        </Link>
      )}
      <Button size="sm" onClick={() => void memoryChanged()}>
        {text.newer.show}
      </Button>
    </ChangedNote>
  )
}

interface ContentProps {
  readonly object: MemoryObject
  readonly isSource: boolean
  readonly line: number | null
}

function Content({ object, isSource, line }: ContentProps) {
  const me = useMe()
  const { key, text: content } = object
  // An agent of the person is somebody else, too: nobody has read what it wrote.
  const isOwn = object.meta.get('user') === String(me.user.id) && !object.meta.has('agent')
  const isLong = content !== null && content.length > renderedCharsMax
  const isRendered = !isSource && isMarkdownName(key) && !isLong
  return (
    <>
      {!isOwn && (
        <p className="memory-others">
          <Icon name="info" size={14} />
          {text.others}
        </p>
      )}
      {content === null ? (
        <Bytes object={object} />
      ) : content === '' ? (
        <p className="memory-note quiet">{text.emptyText}</p>
      ) : isRendered ? (
        <div className="memory-text">
          <Rendered path={key} text={content} />
        </div>
      ) : (
        <>
          {isLong && !isSource && isMarkdownName(key) && <p className="memory-note quiet">{text.tooLargeToRead}</p>}
          <Source content={content} line={line} />
        </>
      )}
    </>
  )
}
