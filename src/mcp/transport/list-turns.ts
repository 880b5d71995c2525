/**
 * Makes lists in turns. A batch may request many lists, so the process makes only one list in each turn of the event loop. Other requests run in
 * between.
 */

const waiting: (() => void)[] = []
let isRunning = false

/** Returns a promise that resolves when the next list may be made. One list takes about a millisecond, and a batch may request a hundred lists. */
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
