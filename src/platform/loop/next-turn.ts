/** Resolves in the next turn of the event loop: whoever works off a burst lets the others go first. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve)
  })
}
