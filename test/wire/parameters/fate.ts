/** What becomes of one field of a request at a provider of another format. */
export type Fate =
  /** The text is in what the provider gets; beside it only these names are told as dropped. */
  | { readonly kind: 'carried'; readonly text: string; readonly dropped: readonly string[] }
  /** Exactly these names are told as dropped. */
  | { readonly kind: 'dropped'; readonly names: readonly string[] }
  /** 400 with these words, and nothing is dialed. */
  | { readonly kind: 'refused'; readonly words: string }
  /** Nothing is lost although nothing goes up, because of this. */
  | { readonly kind: 'met'; readonly because: string }

export const carried = (text: string, ...dropped: readonly string[]): Fate => ({ kind: 'carried', text, dropped })
export const dropped = (...names: readonly string[]): Fate => ({ kind: 'dropped', names })
export const refused = (words: string): Fate => ({ kind: 'refused', words })
export const met = (because: string): Fate => ({ kind: 'met', because })

/** One field: fields of a request that hold it, and its fate. */
export interface Row<Dialect extends string> {
  readonly body: Readonly<Record<string, unknown>>
  readonly fate: Readonly<Record<Dialect, Fate>>
}

/** A row whose fate is the same everywhere. */
export function everywhere<Dialect extends string>(dialects: readonly Dialect[], body: Row<Dialect>['body'], fate: Fate): Row<Dialect> {
  return { body, fate: Object.fromEntries(dialects.map(dialect => [dialect, fate])) as Record<Dialect, Fate> }
}
