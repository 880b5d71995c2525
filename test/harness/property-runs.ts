/**
 * Returns the number of cases that a property test draws. The build machine, which sets CI, draws `full` cases. Other machines draw a quarter of them, and
 * at least `quickMin`, so that all tests end within minutes. Each run draws other cases. PROPERTY_RUNS sets the number for every property on every machine.
 */
export function propertyRuns(full: number, quickMin = 6): number {
  const asked = process.env['PROPERTY_RUNS']
  if (asked !== undefined && asked !== '') return Number(asked)
  const isBuild = !['', '0', 'false'].includes(process.env['CI'] ?? '')
  return isBuild ? full : Math.max(Math.ceil(full / 4), Math.min(full, quickMin))
}
