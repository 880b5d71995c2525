/** Rows of an operator's file for tests of routing. */
export const providerRow = (id: string, base_url: string, residency: string) => ({ id, base_url, residency, auth: 'bearer' })

/** A route with the same price for input and output. */
export const routeRow = (id: string, inr: number, more: object = {}) => ({
  provider: id,
  input_inr_per_mtok: inr,
  output_inr_per_mtok: inr,
  source: 'test',
  as_of: '2026-01-01',
  ...more,
})

export const modelRow = (id: string, routes: readonly object[], more: object = {}) => ({
  id,
  kind: 'chat',
  context_length: 8000,
  tools: true,
  routes,
  ...more,
})
