/** Runs all tasks, at most `mostAtOnce` of them concurrently, and returns their results in order. After the first failure no further task begins. */
export async function inParallel<Item, Result>(items: readonly Item[], mostAtOnce: number, run: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  const left = items.entries()
  let hasFailed = false
  const work = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (hasFailed) return
      try {
        results[at] = await run(item)
      } catch (failure) {
        hasFailed = true
        throw failure
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(mostAtOnce, items.length) }, work))
  return results
}
