const views = ['source', 'history', 'edit'] as const

/** What of an object is shown. `read` is the default, and not in the address. */
export type MemoryView = 'read' | (typeof views)[number]

export interface MemorySearch {
  readonly view?: Exclude<MemoryView, 'read'>
  /** A line of the source, from 1. */
  readonly line?: number
  /** Two versions to compare. `current` is the object as it is. */
  readonly from?: string
  readonly to?: string
  /** The object does not exist yet: the editor makes it. */
  readonly new?: true
  /** What to search for, and how. */
  readonly q?: string
  readonly regex?: true
  readonly case?: true
  /** The folder in which to search. */
  readonly in?: string
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined)

/** Reads what the address asks for. What is not valid is left out. */
export function searchOf(search: Record<string, unknown>): MemorySearch {
  const view = views.find(one => one === search['view'])
  const line = Number(search['line'])
  const found = {
    view,
    line: Number.isSafeInteger(line) && line > 0 ? line : undefined,
    from: textOf(search['from']),
    to: textOf(search['to']),
    new: search['new'] ? (true as const) : undefined,
    q: textOf(search['q']),
    regex: search['regex'] ? (true as const) : undefined,
    case: search['case'] ? (true as const) : undefined,
    in: textOf(search['in']),
  }
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined)) as MemorySearch
}
