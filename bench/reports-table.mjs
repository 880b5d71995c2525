/** Prints the results of `bench:reports`. */

/** Maximum ratio of a report's time with the larger number of events to its time with the smaller number. */
const ratioMax = 2
/** A smaller difference in milliseconds counts as noise, whatever the ratio is. */
const noiseMs = 1

/** Returns each report with its times at both sizes. A report fails when its median is more than twice as long and more than a millisecond longer. */
export function judge(small, large) {
  return small.answers.map((before, index) => {
    const after = large.answers[index]
    const ratio = after.p50 / before.p50
    return {
      name: before.name,
      small: before,
      large: after,
      ratio,
      ratioP95: after.p95 / before.p95,
      isMissed: ratio > ratioMax && after.p50 - before.p50 > noiseMs,
    }
  })
}

const count = n => n.toLocaleString('en')
const ms = value => value.toFixed(1)
const mb = bytes => (bytes / 1e6).toFixed(1)

/** Returns the table as Markdown, with the sizes of the database tables. */
export function reportsTable({ machine, spanDays, options }, rows, small, large) {
  const missed = rows.filter(({ isMissed }) => isMissed)
  return [
    `Reports over HTTP, warm, ${options.times} times each; ${spanDays} days, 1,000 keys, 50 people, 20 agents, 12 models; ms, p50 / p95. The bar: p50 at most ${ratioMax} times as long.`,
    '',
    `| report | ${count(small.events)} events | ${count(large.events)} events | ratio of p50 | of p95 | first, at ${count(large.events)} | |`,
    '|---|---:|---:|---:|---:|---:|---|',
    ...rows.map(
      row =>
        `| ${row.name} | ${ms(row.small.p50)} / ${ms(row.small.p95)} | ${ms(row.large.p50)} / ${ms(row.large.p95)} | ${row.ratio.toFixed(2)} | ${row.ratioP95.toFixed(2)} | ${ms(row.large.firstMs)} | ${row.isMissed ? 'missed' : ''} |`,
    ),
    '',
    `| table | rows at ${count(small.events)} | rows at ${count(large.events)} | MB of rows | MB of indexes |`,
    '|---|---:|---:|---:|---:|',
    ...large.sizes.map(size => {
      const before = small.sizes.find(({ name }) => name === size.name)
      return `| ${size.name} | ${count(before?.rows ?? 0)} | ${count(size.rows)} | ${mb(size.tableBytes)} | ${mb(size.indexBytes)} |`
    }),
    '',
    `Inserted in ${large.fillS.toFixed(0)} s; sums rebuilt in ${large.rebuildS.toFixed(0)} s. A tenth more events belongs to other organisations.`,
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}, commit ${machine.commit}, load average ${machine.loadAverage.toFixed(1)} before and ${machine.loadAverageAtEnd.toFixed(1)} after.`,
    missed.length === 0 ? 'Every report is within the bar.' : `Missed: ${missed.map(({ name }) => name).join(', ')}.`,
  ].join('\n')
}
