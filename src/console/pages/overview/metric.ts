/** What the chart of the overview counts. */
export type Metric = 'spend' | 'calls' | 'tokens'

/** All metrics, in the order in which a person chooses among them. */
export const metrics: readonly Metric[] = ['spend', 'calls', 'tokens']
