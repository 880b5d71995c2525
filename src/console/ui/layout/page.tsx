import { type ReactNode, useEffect } from 'react'

interface PageProps {
  readonly title: string
  /** One sentence that says what the page is for. */
  readonly intro?: ReactNode
  readonly actions?: ReactNode
  /** The way to this page, such as the objects above the one that it shows. */
  readonly above?: ReactNode
  readonly children: ReactNode
}

/** The frame of a page: its title, which is also the title of the tab, and its acts. */
export function Page({ title, intro, actions, above, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Brigade`
  }, [title])
  return (
    <div className="page">
      <header className="page-head">
        <div className="page-title">
          {above}
          <h1>{title}</h1>
          {intro && <p>{intro}</p>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  )
}
