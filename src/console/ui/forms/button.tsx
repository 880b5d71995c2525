import { Link } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { Icon, type IconName } from '../icon.tsx'

type Look = 'plain' | 'primary' | 'danger' | 'ghost'

interface ButtonLook {
  readonly look?: Look
  readonly size?: 'md' | 'sm'
  readonly icon?: IconName | undefined
  /** True while what the button began runs. The button then takes no second click. */
  readonly isBusy?: boolean
}

const classOf = (look: Look, size: 'md' | 'sm'): string => `button button-${look} button-${size}`

/** A button with a label. Its type is `button`, so that only the button of a form that says `submit` sends it. */
export function Button({ look = 'plain', size = 'md', icon, isBusy = false, children, ...rest }: ButtonLook & ComponentProps<'button'>) {
  return (
    <button type="button" {...rest} className={classOf(look, size)} aria-busy={isBusy || undefined} disabled={rest.disabled || isBusy}>
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

/** A square button with an icon. `label` says what it does, to a screen reader and in a tooltip. */
export function IconButton({ icon, label, ...rest }: { readonly icon: IconName; readonly label: string } & Omit<ComponentProps<'button'>, 'children'>) {
  return (
    <button type="button" title={label} aria-label={label} {...rest} className="icon-button">
      <Icon name={icon} />
    </button>
  )
}

/** A link to another page of the console that looks like a button. */
export function LinkButton({ look = 'plain', size = 'md', icon, to, search, children }: ButtonLook & { to: string; search?: object; children: ReactNode }) {
  return (
    <Link to={to} search={search as never} className={classOf(look, size)}>
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  )
}

/** The name of a key on the keyboard. */
export function Kbd({ children }: { readonly children: ReactNode }) {
  return <kbd className="kbd">{children}</kbd>
}
