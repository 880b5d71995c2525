/**
 * How many cases a property test draws: `full` on the build machine, which sets CI. Elsewhere it is a quarter of `full` and at least `quickMin`,
 * so that all tests end within minutes. Each run draws other cases. PROPERTY_RUNS gives the number for every property and every machine.
 */
export function propertyRuns(full: number, quickMin = 6): number {
  const asked = process.env['PROPERTY_RUNS']
  if (asked !== undefined && asked !== '') return Number(asked)
  const isBuild = !['', '0', 'false'].includes(process.env['CI'] ?? '')
  return isBuild ? full : Math.max(Math.ceil(full / 4), Math.min(full, quickMin))
}
