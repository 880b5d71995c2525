import type { ReplyOf } from '../../api/call.ts'

/** What the address of the page of providers says. */

export const providerStates = ['ready', 'own', 'none'] as const
export type ProviderState = (typeof providerStates)[number]

export interface ProvidersSearch {
  /** A part of the name or id. */
  readonly q?: string
  readonly state?: ProviderState
  /** The provider that is open beside the list. */
  readonly provider?: string
  /** The provider for which a key is added. Empty: the person chooses it. */
  readonly add?: string
}

/** A provider that takes a key of the organisation. */
export type Accepting = ReplyOf<'listProviderKeys'>['providers'][number]
export type OwnKey = ReplyOf<'listProviderKeys'>['keys'][number]

/** A provider with all that the console knows of it. */
export interface ProviderRow {
  readonly id: string
  readonly name: string
  readonly residency: 'india' | 'global'
  /** True: this gateway calls it with a key of the operator, or it needs none. */
  readonly isConfigured: boolean
  readonly missing: readonly string[]
  readonly isUntried: boolean
  /** Null: it takes no key of an organisation. */
  readonly accepting: Accepting | null
  readonly own: OwnKey | null
}

const stateTests: Readonly<Record<ProviderState, (row: ProviderRow) => boolean>> = {
  ready: ({ isConfigured, own }) => isConfigured || own !== null,
  own: ({ own }) => own !== null,
  none: ({ isConfigured, own }) => !isConfigured && own === null,
}

/** Returns the providers that the filters choose. The gateway has one reply for all of them, so they are searched here. */
export function chosenRows(rows: readonly ProviderRow[], { q, state }: ProvidersSearch): readonly ProviderRow[] {
  const words = (q ?? '').toLowerCase()
  return rows.filter(row => (words === '' || `${row.name} ${row.id}`.toLowerCase().includes(words)) && (state === undefined || stateTests[state](row)))
}
