/** The filters that the pages of activity share. They have the names of the query parameters of the gateway. */
import { readSpan, type SpanSearch } from './span.ts'

export interface Filters {
  readonly model?: string
  readonly provider?: string
  /** `none` means calls without a key. */
  readonly key_id?: number | 'none'
  readonly agent_id?: number
  readonly uid?: number
  readonly workspace_id?: number
}

export type FilterName = keyof Filters

/** The filters in the order in which a person sees them. */
export const filterNames = ['model', 'provider', 'key_id', 'agent_id', 'uid', 'workspace_id'] as const satisfies readonly FilterName[]

/** What the addresses of both pages say. A link from one to the other keeps it. */
export type ActivitySearch = Filters & SpanSearch

const nameMaxChars = 300

/** Reads a name. Names of models may look like numbers in an address. */
export function readName(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' && text.length <= nameMaxChars ? text : undefined
}

function readId(value: unknown): number | undefined {
  const id = Number(value)
  return value !== '' && value !== true && Number.isSafeInteger(id) && id > 0 ? id : undefined
}

/** Returns the object without the fields that are undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

/** Reads the filters and the span from an address. */
export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  return {
    ...readSpan(search),
    ...given({
      model: readName(search['model']),
      provider: readName(search['provider']),
      key_id: search['key_id'] === 'none' ? ('none' as const) : readId(search['key_id']),
      agent_id: readId(search['agent_id']),
      uid: readId(search['uid']),
      workspace_id: readId(search['workspace_id']),
    }),
  }
}

/** Returns only the filters of an address. */
export const filtersOf = ({ model, provider, key_id, agent_id, uid, workspace_id }: Filters): Filters =>
  given({ model, provider, key_id, agent_id, uid, workspace_id })

/** Returns only the span of an address. */
export const spanSearchOf = ({ range, from, to }: SpanSearch): SpanSearch => given({ range, from, to })

/** Returns the object without some fields. */
export function without<T extends object, K extends keyof T>(fields: T, ...names: readonly K[]): Omit<T, K> {
  const rest = { ...fields }
  for (const name of names) delete rest[name]
  return rest
}
