import type { AuditLine } from '../use-audit.ts'
import { wordsOf } from './acts.ts'
import { objectText } from './object-text.ts'

const kindNames = { user: 'Person', key: 'Key', agent: 'Agent', operator: 'The operator', system: 'Brigade' } as const

/** Returns who acted. `ownId` is the id of the person who reads. */
export function actorText({ kind, id, name }: AuditLine['actor'], ownId: number | null): string {
  if (kind === 'operator' || kind === 'system') return kindNames[kind]
  if (kind === 'user') return id !== null && id === ownId ? 'You' : (name ?? `${kindNames.user} ${id ?? ''}`.trim())
  return `${kindNames[kind]} ${name ?? id ?? ''}`.trim()
}

/** Returns the id in a target such as `id=12 did=dlv_1`, or null. */
export function idIn(target: string | null): string | null {
  const [pair = ''] = (target ?? '').split(' ')
  const [, id = ''] = pair.split(/=(.*)/s)
  return id === '' ? null : id
}

/** Says an act in words, without who did it: "revoked key 12", or "tried to revoke key 12". */
export function actText({ act, target, outcome }: Pick<AuditLine, 'act' | 'target' | 'outcome'>): string {
  const words = wordsOf(act)
  const isDone = outcome === 'ok'
  if (words === null) {
    const name = act.replace(/([a-z0-9])([A-Z])/g, (_, before: string, after: string) => `${before} ${after.toLowerCase()}`)
    return `${isDone ? 'did' : 'tried'}: ${name}${target === null ? '' : ` (${target})`}`
  }
  const [verb, past, object] = words
  return `${isDone ? past : `tried to ${verb}`} ${objectText(object, idIn(target))}`.trim()
}

/** Says a whole line as a sentence. */
export const sentenceOf = (line: AuditLine, ownId: number | null): string => `${actorText(line.actor, ownId)} ${actText(line)}`

/** Cells that a spreadsheet would take for a formula begin with an apostrophe. */
const cell = (value: string | number | null): string => {
  const text = String(value ?? '')
  return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`
}

/** Returns the lines as CSV. */
export function csvOf(lines: readonly AuditLine[], ownId: number | null): string {
  const head = ['time', 'sentence', 'actor_kind', 'actor_id', 'actor', 'act', 'target', 'outcome', 'address', 'request_id']
  const rows = lines.map(line => [
    line.at,
    sentenceOf(line, ownId),
    line.actor.kind,
    line.actor.id,
    line.actor.name ?? null,
    line.act,
    line.target,
    line.outcome,
    line.source_ip,
    line.request_id,
  ])
  return `${[head, ...rows].map(row => row.map(cell).join(',')).join('\r\n')}\r\n`
}
