/** The lists of one batch share the loop with everybody else: the process makes one list in a turn of the event loop. */

const waiting: (() => void)[] = []
let isRunning = false

/** Resolves when the next list may be made. One list takes about a millisecond, and a batch may ask for a hundred of them. */
export function listTurn(): Promise<void> {
  return new Promise(resolve => {
    waiting.push(resolve)
    if (isRunning) return
    isRunning = true
    setImmediate(nextList)
  })
}

function nextList(): void {
  waiting.shift()?.()
  isRunning = waiting.length > 0
  if (isRunning) setImmediate(nextList)
}
