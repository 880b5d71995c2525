import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Column } from '../../../ui/data/table.tsx'
import { Time } from '../../../ui/data/time.tsx'
import { VirtualTable } from '../../../ui/data/virtual-table.tsx'
import { bytesText, count } from '../../../ui/format/numbers.ts'
import { Button } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { AddEntry } from '../dialogs/add-entry.tsx'
import { NewSpace } from '../dialogs/new-space.tsx'
import { Author } from '../object/author.tsx'
import { fixedChildren, isWritable, kindOf, labelOf, type Places } from '../places.ts'
import { text } from '../text.ts'
import { type Entry, useFolder } from '../use-memory.ts'
import { Crumbs } from './crumbs.tsx'
import { SpacePeople } from './space-people.tsx'

interface FolderViewProps {
  readonly places: Places
  readonly path: string
  readonly onNew: () => void
}

/** A row of a folder: a folder in it, or an object. */
type Row = { readonly path: string; readonly label: string; readonly entry: Entry | null }

/** The content of a folder, and of a shared space its people. */
export function FolderView({ places, path, onNew }: FolderViewProps) {
  const [dialog, setDialog] = useState<'space' | 'entry' | null>(null)
  const prefix = `${path}/`
  const kind = kindOf(path)
  const fixed = fixedChildren(places, prefix)
  return (
    <Page
      title={labelOf(places, path) ?? path}
      above={<Crumbs places={places} path={path} />}
      actions={<FolderActions path={path} onNew={onNew} onDialog={setDialog} />}
    >
      <div className={kind === 'space' && /^shared\/[^/]+$/.test(path) ? 'memory-columns' : ''}>
        <Panel isFlush>
          {fixed === null ? (
            <Listed prefix={prefix} />
          ) : fixed.length === 0 ? (
            <Empty icon="link" title={text.spacesEmpty}>
              {text.spacesEmptyAbout}
            </Empty>
          ) : (
            <Rows
              rows={fixed.map(root => ({ path: root.prefix.slice(0, -1), label: root.label, entry: null }))}
              label={text.folder}
              onMore={null}
              isLoadingMore={false}
            />
          )}
        </Panel>
        {kind === 'space' && /^shared\/[^/]+$/.test(path) && <SpacePeople space={path.slice('shared/'.length)} />}
      </div>
      {dialog === 'space' && <NewSpace onClose={() => setDialog(null)} />}
      {dialog === 'entry' && <AddEntry folder={path} onClose={() => setDialog(null)} />}
    </Page>
  )
}

interface FolderActionsProps {
  readonly path: string
  readonly onNew: () => void
  readonly onDialog: (dialog: 'space' | 'entry') => void
}

function FolderActions({ path, onNew, onDialog }: FolderActionsProps) {
  if (path === 'shared')
    return (
      <Button look="primary" icon="plus" onClick={() => onDialog('space')}>
        {text.newSpace}
      </Button>
    )
  if (kindOf(path) === 'journal')
    return (
      <Button look="primary" icon="plus" onClick={() => onDialog('entry')}>
        {text.addEntry}
      </Button>
    )
  if (!isWritable(path)) return null
  return (
    <Button look="primary" icon="plus" onClick={onNew}>
      {text.newFile}
    </Button>
  )
}

/** The content that the gateway lists, page by page. */
function Listed({ prefix }: { readonly prefix: string }) {
  const folder = useFolder(prefix)
  const kind = kindOf(prefix)
  return (
    <Loaded query={folder} skeleton={<Skeleton lines={6} height={28} />}>
      {({ folders, keys }) => {
        const rows: Row[] = [
          ...folders.map(path => ({ path: path.slice(0, -1), label: path.slice(prefix.length, -1), entry: null })),
          ...keys.map(entry => ({ path: entry.key, label: entry.key.slice(prefix.length), entry })),
        ]
        if (rows.length === 0 && !folder.hasNextPage)
          return (
            <Empty icon="folder" title={text.folderEmpty} {...(isWritable(prefix) && kind !== 'journal' ? { command: text.folderCommand(prefix) } : {})}>
              {text.folderEmptyAbout[kind]}
            </Empty>
          )
        return (
          <Rows
            rows={rows}
            label={text.folder}
            onMore={folder.hasNextPage ? () => void folder.fetchNextPage() : null}
            isLoadingMore={folder.isFetchingNextPage}
          />
        )
      }}
    </Loaded>
  )
}

const columns: readonly Column<Row>[] = [
  {
    key: 'name',
    head: text.columns.name,
    isName: true,
    cell: ({ path, label, entry }) => (
      <Link to="/memory/$" params={{ _splat: path }} className="memory-name">
        <Icon name={entry === null ? 'folder' : 'file'} />
        <span>{label}</span>
      </Link>
    ),
  },
  { key: 'written', head: text.columns.written, cell: ({ entry }) => (entry === null ? <span className="quiet">–</span> : <Time at={entry.modified} />) },
  { key: 'by', head: text.columns.by, isOnCards: false, cell: ({ entry }) => (entry === null ? <span className="quiet">–</span> : <Author of={entry} />) },
  {
    key: 'size',
    head: text.columns.size,
    align: 'end',
    cell: ({ entry }) => (entry === null ? <span className="quiet">–</span> : <span title={`${count(entry.size)} bytes`}>{bytesText(entry.size)}</span>),
  },
]

interface RowsProps {
  readonly rows: readonly Row[]
  readonly label: string
  readonly onMore: (() => void) | null
  readonly isLoadingMore: boolean
}

function Rows({ rows, label, onMore, isLoadingMore }: RowsProps) {
  const navigate = useNavigate()
  const open = ({ path }: Row): void => void navigate({ to: '/memory/$', params: { _splat: path } })
  const rowKey = ({ path, entry }: Row): string => (entry === null ? `${path}/` : path)
  return <VirtualTable label={label} columns={columns} rows={rows} rowKey={rowKey} onOpen={open} onMore={onMore} isLoadingMore={isLoadingMore} />
}
