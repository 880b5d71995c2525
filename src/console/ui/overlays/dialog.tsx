import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { IconButton } from '../forms/button.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** Buttons at the end. */
  readonly actions?: ReactNode
  readonly width?: 'sm' | 'md' | 'lg'
  /** False: neither Escape nor a click outside closes it. */
  readonly isDismissible?: boolean
  /** Receives the form of the dialog. With it the content is a form, and a `submit` button among the actions sends it. */
  readonly onSubmit?: () => void
}

/** A modal dialog. It opens when it is drawn, and gives the focus back when it goes. */
export function Dialog({ title, onClose, children, actions, width = 'md', isDismissible = true, onSubmit }: DialogProps) {
  const titleId = useId()
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    dialog?.showModal()
    dialog?.querySelector<HTMLElement>('.dialog-body :is(input:not([type=radio]), textarea, select)')?.focus()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus({ preventScroll: true })
    }
  }, [])
  const body = (
    <>
      <div className="dialog-body">{children}</div>
      {actions && <div className="dialog-actions">{actions}</div>}
    </>
  )
  return (
    <dialog
      ref={element}
      className={`dialog dialog-${width}`}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        if (isDismissible) onClose()
      }}
      onKeyDown={event => {
        if (event.key === 'Escape' && !isDismissible) event.preventDefault()
      }}
      onClose={event => {
        // A browser closes a dialog at the second Escape, whatever the page says.
        if (!isDismissible && event.target === element.current && element.current?.isConnected) element.current.showModal()
      }}
      onClick={event => {
        if (isDismissible && event.target === element.current) onClose()
      }}
    >
      <div className="dialog-frame">
        <header className="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {isDismissible && <IconButton icon="close" label="Close" onClick={onClose} />}
        </header>
        {onSubmit ? (
          <form
            className="dialog-form"
            noValidate
            onSubmit={event => {
              event.preventDefault()
              onSubmit()
            }}
          >
            {body}
          </form>
        ) : (
          body
        )}
      </div>
    </dialog>
  )
}
