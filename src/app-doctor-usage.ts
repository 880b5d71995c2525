import type { OperatorDesk } from './app-operator.ts'
import type { Finding } from './cli/doctor.ts'

/** Today and yesterday: what a process of an earlier version wrote shows at once. */
const daysChecked = 2

/** Whether the sums that reports read are those of the events. */
export async function checkUsageSums({ operator }: { readonly operator: Pick<OperatorDesk, 'usage'> }): Promise<Finding> {
  const wrong = await operator.usage.disagreements(daysChecked)
  if (wrong.length === 0) return { what: 'usage sums', state: 'ok', detail: 'agree with the events of today and yesterday' }
  const days = wrong.map(({ day, events, summed }) => `${day} (${events} events, ${summed} summed)`).join(', ')
  return {
    what: 'usage sums',
    state: 'wrong',
    detail: `do not agree with the events on ${days}: a process of an earlier version has written there. When none runs any more: npx brigade admin usage rebuild`,
  }
}
