import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { Button } from '../../../ui/forms/button.tsx'
import { Loaded } from '../../../ui/layout/panel.tsx'
import { Skeleton } from '../../../ui/layout/skeleton.tsx'
import { ChangedNote, newerThan, type ShownObject } from '../object/changed-note.tsx'
import { objectQuery, useVersions, type Version } from '../use-memory.ts'
import { editText } from './text.ts'
import type { Base } from './use-save.ts'

const DiffTable = lazy(() => import('../../../ui/compare/diff-table.tsx').then(({ DiffTable: component }) => ({ default: component })))

interface DraftNewerProps {
  readonly path: string
  readonly base: Base
  readonly shown: ShownObject
}

/** Says that somebody changed the object while a person writes, and shows what they changed. The draft stays as it is, and saving merges both. */
export function DraftNewer({ path, base, shown }: DraftNewerProps) {
  const versions = useVersions(path, base.etag !== null)
  const newer = newerThan(shown, versions)
  const [isOpen, setOpen] = useState(false)
  if (newer === null) return null
  return (
    <section className="panel memory-draft-newer" aria-label={editText.newer}>
      <ChangedNote by={newer}>
        <span className="quiet">{editText.draftKept}</span>
        {newer.version !== null && newer.how !== 'delete' && (
          <Button size="sm" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? editText.hideNewer : editText.showNewer}
          </Button>
        )}
      </ChangedNote>
      {isOpen && newer.version !== null && newer.how !== 'delete' && <Difference path={path} base={base} newer={newer} />}
    </section>
  )
}

function Difference({ path, base, newer }: { readonly path: string; readonly base: Base; readonly newer: Version }) {
  const theirs = useQuery(objectQuery(path, newer.version))
  return (
    <Loaded query={theirs} skeleton={<Skeleton lines={5} />}>
      {({ text }) => (
        <Suspense fallback={<Skeleton lines={5} />}>
          <DiffTable before={base.text} after={text ?? ''} beforeName={editText.merge.base} afterName={editText.merge.theirs} />
        </Suspense>
      )}
    </Loaded>
  )
}
