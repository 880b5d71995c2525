/** What happens to one field of a request when the provider has another format. */
export type Fate =
  /** The request to the provider contains this text. Only these names are reported as dropped. */
  | { readonly kind: 'carried'; readonly text: string; readonly dropped: readonly string[] }
  /** Exactly these names are reported as dropped. */
  | { readonly kind: 'dropped'; readonly names: readonly string[] }
  /** The call is 400 with these words, and no provider is called. */
  | { readonly kind: 'refused'; readonly words: string }
  /** The field is not sent to the provider and nothing is lost. `because` gives the reason. */
  | { readonly kind: 'met'; readonly because: string }

export const carried = (text: string, ...dropped: readonly string[]): Fate => ({ kind: 'carried', text, dropped })
export const dropped = (...names: readonly string[]): Fate => ({ kind: 'dropped', names })
export const refused = (words: string): Fate => ({ kind: 'refused', words })
export const met = (because: string): Fate => ({ kind: 'met', because })

/** One field: a part of a request that contains it, and its fate in each dialect. */
export interface Row<Dialect extends string> {
  readonly body: Readonly<Record<string, unknown>>
  readonly fate: Readonly<Record<Dialect, Fate>>
}

/** Returns a row with the same fate in every dialect. */
export function everywhere<Dialect extends string>(dialects: readonly Dialect[], body: Row<Dialect>['body'], fate: Fate): Row<Dialect> {
  return { body, fate: Object.fromEntries(dialects.map(dialect => [dialect, fate])) as Record<Dialect, Fate> }
}
