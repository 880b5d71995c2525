/** `rule` opens one rule beside the list, and `new` the form for another one. */
export interface WorkloadsSearch {
  readonly tab?: 'test'
  readonly rule?: number
  readonly new?: true
}
