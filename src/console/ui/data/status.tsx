import { Icon, type IconName } from '../icon.tsx'

export type Tone = 'good' | 'warn' | 'bad' | 'quiet'

const icons: Readonly<Record<Tone, IconName>> = { good: 'good', warn: 'warn', bad: 'bad', quiet: 'pause' }

interface StatusProps {
  readonly tone: Tone
  readonly children: string
  readonly title?: string | undefined
  /** Default: the icon of the tone. */
  readonly icon?: IconName
}

/** A state as an icon and a word. */
export function Status({ tone, children, title, icon = icons[tone] }: StatusProps) {
  return (
    <span className={`status status-${tone}`} title={title}>
      <Icon name={icon} size={14} />
      {children}
    </span>
  )
}

/** A short quiet label, such as the scope of a key. */
export function Tag({ children }: { readonly children: string }) {
  return <span className="tag">{children}</span>
}
