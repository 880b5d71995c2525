/**
 * Returns the shares of counts in percent, with two decimals, in the order of the counts. The shares add up to exactly 100. When the total is 0, all shares are
 * 0. A share is 100 only when the other counts are 0. So one request in a million outside India is not rounded away.
 */
export function percentages(counts: readonly number[]): number[] {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return counts.map(() => 0)
  // The shares are integers in hundredths of a percent, so their sum is exact. Each result is the double nearest to its decimal text.
  const exact = counts.map(count => (count / total) * 10_000)
  const shares = exact.map(Math.floor)
  const byRest = exact.map((share, at) => ({ at, rest: share - Math.floor(share) })).sort((a, b) => b.rest - a.rest || a.at - b.at)
  const left = 10_000 - shares.reduce((sum, share) => sum + share, 0)
  for (const { at } of byRest.slice(0, left)) shares[at] = (shares[at] ?? 0) + 1
  const whole = shares.indexOf(10_000)
  if (whole >= 0 && counts[whole] !== total) {
    const other = counts.reduce((best, count, at) => (at !== whole && (best < 0 || count > (counts[best] ?? 0)) ? at : best), -1)
    shares[whole] = 9_999
    shares[other] = 1
  }
  return shares.map(share => share / 100)
}
