import type { UseQueryResult } from '@tanstack/react-query'
import { type ReactNode, useId } from 'react'
import { Boundary, ErrorPanel } from './error-panel.tsx'
import { Skeleton } from './skeleton.tsx'

interface PanelProps {
  readonly title?: string
  /** A few quiet words after the title. */
  readonly note?: ReactNode
  readonly actions?: ReactNode
  readonly children: ReactNode
  /** True: the content goes to the edges, as a table does. */
  readonly isFlush?: boolean
}

/** A box of a page with a title. It keeps its own mistakes to itself. */
export function Panel({ title, note, actions, children, isFlush = false }: PanelProps) {
  const id = useId()
  return (
    <section className={isFlush ? 'panel panel-flush' : 'panel'} aria-labelledby={title ? id : undefined}>
      {title && (
        <header className="panel-head">
          <h2 id={id}>{title}</h2>
          {note && <p>{note}</p>}
          {actions && <div className="panel-actions">{actions}</div>}
        </header>
      )}
      <div className="panel-body">
        <Boundary>{children}</Boundary>
      </div>
    </section>
  )
}

interface LoadedProps<T> {
  readonly query: UseQueryResult<T>
  readonly children: (data: T) => ReactNode
  /** The shape of the content while it loads. */
  readonly skeleton?: ReactNode
}

/** Draws what a query has read: a skeleton before, the error with a way to try again instead. Data that was read before stays while it is read again. */
export function Loaded<T>({ query, children, skeleton = <Skeleton lines={3} /> }: LoadedProps<T>) {
  if (query.data !== undefined) return <Boundary>{children(query.data)}</Boundary>
  if (query.isError) return <ErrorPanel error={query.error} onRetry={() => void query.refetch()} />
  return <div aria-busy="true">{skeleton}</div>
}
