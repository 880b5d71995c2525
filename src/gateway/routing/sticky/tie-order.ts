import { hash } from 'node:crypto'
import { type Route, stateKeyOf } from '../../catalog/model.ts'

/**
 * Returns a comparison for routes that rank equal. All processes order them alike for one conversation, and differently for others, so that equal routes
 * share the conversations.
 */
export function tieOrder(conversation: string): (a: Route, b: Route) => number {
  const placeOf = (route: Route): string => hash('sha256', `${conversation}\n${stateKeyOf(route)}`, 'hex')
  return (a, b) => {
    const [first, second] = [placeOf(a), placeOf(b)]
    return first < second ? -1 : first > second ? 1 : 0
  }
}
