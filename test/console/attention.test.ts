/** The order of what a person should look at. It is the console's own logic, so it needs no browser. */
import { expect, test } from 'vitest'

// The types of the console know the browser, and those of the tests do not. So the name of the module is no literal.
const module: string = '../../src/console/pages/overview/findings.ts'
const { budgetFindings } = await import(module)

const budget = (id: string, capInr: number | null, spentInr: number) => ({
  scope: 'agent' as const,
  id,
  period: 'month' as const,
  name: id,
  cap_inr: capInr,
  spent_inr: spentInr,
  in_flight_inr: 0,
  in_doubt_inr: 0,
  state: 'ok' as const,
})

test('what needs attention names used-up budgets first, then those with the largest share spent, and no budget below 80 %', () => {
  const found = budgetFindings([
    budget('near', 100, 81),
    budget('unlimited', null, 900),
    budget('over', 10, 12),
    budget('calm', 100, 79),
    budget('nearer', 1000, 990),
  ])
  expect(found.map(({ id, tone }: { id: string; tone: string }) => `${id} ${tone}`)).toEqual(['agent over bad', 'agent nearer warn', 'agent near warn'])
})
