/** A change that consoles may show, before it is known who may see it. */

/**
 * - `spent`: a scope has spent something. The id is `key:12`, `agent:7`, `org:3` and so on. Null: nobody knows which scope.
 * - `budget`: a budget was set. The id has the same form.
 * - `tools`: MCP servers of the organisation or their tools. The id is null.
 * - the others: the thing with that id. Null: a thing was made, or it is not known which one changed.
 */
export type ChangeKind = 'spent' | 'budget' | 'agent' | 'key' | 'webhook' | 'member' | 'tools'

export interface Change {
  readonly kind: ChangeKind
  /** Null: any organisation. For an agent or a key with an id, the organisation is then looked up. */
  readonly orgId: number | null
  readonly id: string | null
  /** For an agent or a key without an id: the person whose thing it is. */
  readonly userId?: number | null
}

const kinds: ReadonlySet<string> = new Set<ChangeKind>(['spent', 'budget', 'agent', 'key', 'webhook', 'member', 'tools'])
const nothing = '-'

/** Returns a change as a word of a notification. */
export const wordOf = ({ kind, orgId, id, userId }: Change): string => `${kind}/${orgId ?? nothing}/${id ?? nothing}/${userId ?? nothing}`

/** Returns the change that a word of a notification says, or null for a word of another version. */
export function changeOf(word: string): Change | null {
  const [kind = '', orgId = '', id = '', userId = ''] = word.split('/')
  if (!kinds.has(kind)) return null
  return { kind: kind as ChangeKind, orgId: numberIn(orgId), id: id === nothing ? null : id, userId: numberIn(userId) }
}

const numberIn = (text: string): number | null => (/^\d{1,10}$/.test(text) ? Number(text) : null)
