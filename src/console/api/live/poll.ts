import { queryClient } from '../queries.ts'
import { readAgain } from './refresher.ts'
import { readAt, streamState } from './stream-state.ts'

/** How often a visible tab reads everything that it shows while the stream of hints is gone. */
export const pollMs = 15_000

/** Polls while the stream is gone and the tab is visible. Returns a function that ends it. */
export function pollWithoutStream(): () => void {
  const timer = setInterval(() => {
    if (streamState.get() === 'gone' && document.visibilityState === 'visible') void readAgain('all')
  }, pollMs)
  return () => clearInterval(timer)
}

/** Notes when something that is shown was read. Returns a function that ends it. */
export function noteReads(): () => void {
  return queryClient.getQueryCache().subscribe(event => {
    if (event.type === 'updated' && event.action.type === 'success' && event.query.isActive()) readAt.set(event.query.state.dataUpdatedAt)
  })
}
