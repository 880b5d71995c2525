/** Resolves in the next turn of the event loop, so that the worker of a burst lets others go first. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
