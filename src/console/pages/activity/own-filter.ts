/** A filter of one page alone. */
export interface OwnFilter {
  readonly name: string
  readonly label: string
  readonly value: string | undefined
  readonly options: readonly { readonly value: string; readonly label: string }[]
}

/** New values of the filters of one page. Undefined removes a filter. */
export type OwnValues = Readonly<Record<string, string | undefined>>
