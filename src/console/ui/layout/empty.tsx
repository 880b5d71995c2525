import type { ReactNode } from 'react'
import { Code } from '../data/code.tsx'
import { Icon, type IconName } from '../icon.tsx'

interface EmptyProps {
  readonly icon: IconName
  readonly title: string
  /** One sentence. */
  readonly children: ReactNode
  readonly action?: ReactNode
  /** The same in a terminal. */
  readonly command?: string
}

/** What a list shows before there is anything in it. */
export function Empty({ icon, title, children, action, command }: EmptyProps) {
  return (
    <div className="empty">
      <div className="empty-icon">
        <Icon name={icon} size={20} />
      </div>
      <p className="empty-title">{title}</p>
      <p className="quiet">{children}</p>
      {action && <div className="empty-action">{action}</div>}
      {command && <Code text={command} label="With the command line" />}
    </div>
  )
}
