import { Status } from '../../../ui/data/status.tsx'
import { text } from '../text.ts'
import type { AuditLine } from '../use-audit.ts'

/** How an act ended, as an icon and a word. */
export function ActOutcome({ outcome }: Pick<AuditLine, 'outcome'>) {
  if (outcome === 'ok') return <Status tone="good">{text.ok}</Status>
  if (outcome === null)
    return (
      <Status tone="warn" title={text.unknownMeans}>
        {text.unknown}
      </Status>
    )
  return <Status tone="bad">{text.refused(outcome)}</Status>
}
