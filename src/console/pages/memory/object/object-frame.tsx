import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Page } from '../../../ui/layout/page.tsx'
import { Tabs } from '../../../ui/layout/tabs.tsx'
import { Crumbs } from '../folder/crumbs.tsx'
import { isMarkdownName, labelOf, type Places } from '../places.ts'
import type { MemoryView } from '../search-params.ts'
import { text } from '../text.ts'

interface ObjectFrameProps {
  readonly places: Places
  readonly path: string
  readonly view: MemoryView
  readonly actions?: ReactNode
  /** What is beside the content: facts of the object. */
  readonly beside?: ReactNode
  readonly children: ReactNode
}

/** The frame of an object: its name, the folders above, its views, and its facts. */
export function ObjectFrame({ places, path, view, actions, beside, children }: ObjectFrameProps) {
  const navigate = useNavigate()
  const views = isMarkdownName(path) ? (['read', 'source', 'history'] as const) : (['source', 'history'] as const)
  const shown = view === 'read' && !isMarkdownName(path) ? 'source' : view
  const show = (next: string): void => {
    const found = views.find(one => one === next)
    if (found === undefined) return
    void navigate({ to: '/memory/$', params: { _splat: path }, search: found === 'read' ? {} : { view: found }, replace: true, resetScroll: false })
  }
  return (
    <Page title={labelOf(places, path) ?? path} above={<Crumbs places={places} path={path} />} actions={actions}>
      <div className="memory-columns">
        <div className="panel memory-object">
          <Tabs label={text.title} value={shown} onChange={show} tabs={views.map(id => ({ id, label: text.views[id] }))}>
            {children}
          </Tabs>
        </div>
        {beside}
      </div>
    </Page>
  )
}
