import type { AuditEntry } from '../../../gateway/audit/audit.ts'

/** Entries of the audit trail, newest first. */
export interface AuditPage {
  readonly entries: readonly AuditEntry[]
  readonly next_before: number | null
}

/** Returns the entries as lines for a terminal: time, actor, act, target, outcome and address. */
export function auditLines({ entries, next_before: nextBefore }: AuditPage): string {
  if (entries.length === 0) return 'no entries\n'
  const lines = entries.map(({ at, actor, act, target, outcome, source_ip: ip }) => {
    const who = `${actor.kind}${actor.id === null ? '' : `:${actor.id}`}${actor.name === undefined ? '' : ` (${withoutControl(actor.name)})`}`
    return [at, who, act, target ?? '-', outcome ?? 'not ended', ip ?? '-'].join('  ')
  })
  return `${lines.join('\n')}\n${nextBefore === null ? '' : `more: --before ${nextBefore}\n`}`
}

/** Removes control characters, so that the name of a key or agent cannot control the terminal. */
const withoutControl = (text: string): string => text.replace(/\p{Cc}/gu, ' ')
