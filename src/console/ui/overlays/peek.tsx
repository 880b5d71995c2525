import { type ReactNode, useEffect, useId, useRef } from 'react'
import { IconButton } from '../forms/button.tsx'
import { CopyButton } from '../forms/copy.tsx'

interface PeekProps {
  readonly title: string
  /** The id of the object, in small type. */
  readonly subtitle?: ReactNode
  readonly onClose: () => void
  readonly children: ReactNode
  readonly actions?: ReactNode
}

/** A panel beside a list with one object of it. The list stays in use. The address of the page names the object, so the panel has a link. */
export function Peek({ title, subtitle, onClose, children, actions }: PeekProps) {
  const titleId = useId()
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    const before = document.activeElement
    panel.current?.focus({ preventScroll: true })
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true })
    }
  }, [])
  return (
    <aside
      ref={panel}
      className="peek"
      aria-labelledby={titleId}
      tabIndex={-1}
      onKeyDown={event => {
        if (event.key === 'Escape' && !event.defaultPrevented) onClose()
      }}
    >
      <header className="peek-head">
        <div className="peek-title">
          <h2 id={titleId}>{title}</h2>
          {subtitle && <p>{subtitle}</p>}
        </div>
        <CopyButton text={location.href} label="Copy link" />
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <div className="peek-body">{children}</div>
      {actions && <footer className="peek-actions">{actions}</footer>}
    </aside>
  )
}
