import { type ReactNode, useEffect, useRef } from 'react'
import { createStore, useStore } from '../../api/store.ts'
import { IconButton } from '../forms/button.tsx'
import { Icon } from '../icon.tsx'

interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: 'good' | 'bad'
}

const shownMs = 6_000
const shownMax = 3
/** Opening the region makes the browser compute the layout of the whole page, so an empty region waits until the page is drawn. */
const emptyWaitMs = 1_000
const toasts = createStore<readonly Toast[]>([])
let nextId = 1

const dismiss = (id: number): void => toasts.set(toasts.get().filter(toast => toast.id !== id))

/** Shows a short message for a few seconds. A screen reader says it. An error that needs an answer belongs beside its field instead. */
export function toast(text: string, tone: 'good' | 'bad' = 'good'): void {
  const id = nextId++
  toasts.set([...toasts.get().slice(1 - shownMax), { id, text, tone }])
  setTimeout(() => dismiss(id), shownMs)
}

/** The place of the messages. It is above dialogs. `children` are messages that stay for as long as the page shows them. */
export function Toasts({ children }: { readonly children?: ReactNode }) {
  const shown = useStore(toasts)
  const region = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = region.current
    if (!element) return
    const isEmpty = element.childElementCount === 0
    // A dialog that opened later is above the region, so the region goes up again. It stays open, because a screen reader says only what changes in sight.
    if (!isEmpty && element.matches(':popover-open') && document.querySelector('dialog[open]') !== null) element.hidePopover()
    if (element.matches(':popover-open')) return
    if (!isEmpty) return element.showPopover()
    const timer = setTimeout(() => element.showPopover(), emptyWaitMs)
    return () => clearTimeout(timer)
  })
  return (
    <div ref={region} popover="manual" className="toasts" role="status" aria-live="polite">
      {children}
      {shown.map(({ id, text, tone }) => (
        <div key={id} className={`toast toast-${tone}`}>
          <Icon name={tone} />
          <span>{text}</span>
          <IconButton icon="close" label="Dismiss" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  )
}
