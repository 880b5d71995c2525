/** The orders of the organisations. */
export const orgSorts = ['newest', 'oldest', 'name'] as const

export interface HealthSearch {
  readonly q?: string
  readonly sort?: (typeof orgSorts)[number]
}
