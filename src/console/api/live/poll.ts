import { queryClient } from '../queries.ts'
import { readAgain } from './refresher.ts'
import { readAt, streamState } from './stream-state.ts'

/** How often a visible tab reads everything that it shows while the stream of hints is gone. */
const pollMs = 15_000
/** Number of polls that the stream of hints replaces. The next one is made anyway, for what this person gets no hints of. */
const pollsReplaced = 3

/** Polls while the tab is visible: every time without the stream, and once a minute with it. Returns a function that ends it. */
export function poll(): () => void {
  let replaced = 0
  const timer = setInterval(() => {
    replaced = streamState.get() === 'open' ? replaced + 1 : 0
    if (document.visibilityState !== 'visible' || (replaced > 0 && replaced <= pollsReplaced)) return
    replaced = 0
    void readAgain('all')
  }, pollMs)
  return () => clearInterval(timer)
}

/** Notes when something that is shown was read. Returns a function that ends it. */
export function noteReads(): () => void {
  return queryClient.getQueryCache().subscribe(event => {
    if (event.type === 'updated' && event.action.type === 'success' && event.query.isActive()) readAt.set(event.query.state.dataUpdatedAt)
  })
}
