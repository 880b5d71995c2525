import { type ComponentProps, type KeyboardEvent, type ReactNode, useId, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { Icon, type IconName } from '../icon.tsx'

const gapPx = 4
const edgePx = 8

/** Puts a popover below its button, or above it where there is no room. */
function place(menu: HTMLElement, button: HTMLElement, align: 'start' | 'end'): void {
  const at = button.getBoundingClientRect()
  const { offsetWidth: width, offsetHeight: height } = menu
  const left = align === 'start' ? at.left : at.right - width
  const hasRoomBelow = at.bottom + gapPx + height + edgePx <= innerHeight
  menu.style.left = `${Math.max(edgePx, Math.min(left, innerWidth - width - edgePx))}px`
  menu.style.top = `${hasRoomBelow ? at.bottom + gapPx : Math.max(edgePx, at.top - gapPx - height)}px`
}

interface MenuProps {
  /** The content of the button. */
  readonly trigger: ReactNode
  readonly label: string
  /** The class of a button that has a text. Without it the button is a square with an icon. */
  readonly triggerClass?: string
  readonly align?: 'start' | 'end'
  readonly children: ReactNode
}

/** A button that opens a menu. The browser closes it on Escape and on a click outside. What it contains is drawn while it is open, because each row of a table has one. */
export function Menu({ trigger, label, triggerClass, align = 'end', children }: MenuProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const menu = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const items = (): HTMLElement[] => [...(menu.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]:not(:disabled)') ?? [])]
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = items()
    const at = all.indexOf(document.activeElement as HTMLElement)
    const target = { ArrowDown: all[at + 1] ?? all[0], ArrowUp: all[at - 1] ?? all.at(-1), Home: all[0], End: all.at(-1) }[event.key]
    if (target === undefined) return
    event.preventDefault()
    target.focus()
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        className={triggerClass ?? 'icon-button'}
        aria-label={triggerClass ? undefined : label}
        title={label}
        aria-haspopup="menu"
        popoverTarget={id}
      >
        {trigger}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        className="menu"
        onKeyDown={onKeyDown}
        onBeforeToggle={event => {
          // The browser measures the menu as soon as it is open.
          if (event.newState === 'open') flushSync(() => setOpen(true))
        }}
        onToggle={event => {
          if (event.newState !== 'open') setOpen(false)
          if (event.newState !== 'open' || !menu.current || !button.current) return
          place(menu.current, button.current, align)
          items()[0]?.focus()
        }}
        onClick={event => {
          if ((event.target as HTMLElement).closest('[role^="menuitem"]')) menu.current?.hidePopover()
        }}
      >
        {isOpen && children}
      </div>
    </>
  )
}

interface MenuItemProps extends ComponentProps<'button'> {
  readonly icon?: IconName
  /** True for the chosen one of several. */
  readonly isChecked?: boolean
  readonly isDanger?: boolean
}

/** An act in a menu, or a choice when `isChecked` is given. */
export function MenuItem({ icon, isChecked, isDanger = false, children, ...rest }: MenuItemProps) {
  return (
    <button
      type="button"
      {...(isChecked === undefined ? { role: 'menuitem' } : { role: 'menuitemradio', 'aria-checked': isChecked })}
      tabIndex={-1}
      className={isDanger ? 'menu-item menu-danger' : 'menu-item'}
      {...rest}
    >
      {icon && <Icon name={icon} />}
      <span className="menu-label">{children}</span>
      {isChecked && <Icon name="check" />}
    </button>
  )
}

/** A heading inside a menu. */
export function MenuHeading({ children }: { readonly children: ReactNode }) {
  return (
    <div className="menu-heading" role="presentation">
      {children}
    </div>
  )
}

/** A line between groups of a menu. */
export function MenuLine() {
  // biome-ignore lint/a11y/useSemanticElements: a menu allows a separator, and not every browser takes an hr in it.
  return <div className="menu-line" role="separator" />
}
