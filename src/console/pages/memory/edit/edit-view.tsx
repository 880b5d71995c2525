import { useQuery } from '@tanstack/react-query'
import { hasRole, useMe } from '../../../app/me.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { Crumbs } from '../folder/crumbs.tsx'
import { mayEdit, nameOf, type Places } from '../places.ts'
import { objectQuery } from '../use-memory.ts'
import { Draft } from './draft.tsx'
import { editText } from './text.ts'
import { baseOf } from './use-save.ts'

interface EditViewProps {
  readonly places: Places
  readonly path: string
  readonly isNew: boolean
}

const newBase = { text: '', etag: null, sources: [] }

/** The editor of an object. What the person began with stays the base of the edit, whatever the page reads later. */
export function EditView({ places, path, isNew }: EditViewProps) {
  const me = useMe()
  const object = useQuery({ ...objectQuery(path), enabled: !isNew })
  if (isNew) return <Draft key={path} places={places} path={path} first={newBase} readAtMs={0} />
  const { text } = object.data ?? {}
  if (object.data && typeof text === 'string' && mayEdit(path, hasRole(me, 'admin')))
    return <Draft key={path} places={places} path={path} first={baseOf({ ...object.data, text })} readAtMs={object.dataUpdatedAt} />
  return (
    <Page title={nameOf(path)} above={<Crumbs places={places} path={path} />}>
      <Panel>
        <Loaded query={object} skeleton={<Skeleton lines={8} />}>
          {({ text: content }) => (
            <Empty icon="file" title={nameOf(path)}>
              {content === null ? editText.isBinary : editText.notYours}
            </Empty>
          )}
        </Loaded>
      </Panel>
    </Page>
  )
}
