/**
 * `npm run bench -- --compare <commit>` compares this build with the build of an older commit. Both are started several times and measured in turn, in the
 * opposite order in every second round and start. For each scenario, the table shows the ratio of this build's figure to the older build's figure, and the
 * bounds that contain the true ratio with 95 % certainty.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/paths.mjs'
import { startBrigade } from './contenders.mjs'
import { resultsOf, table } from './report.mjs'
import { median, medianBounds } from './statistics.mjs'

const run = (file, args, options) => {
  const done = spawnSync(file, args, { maxBuffer: 1024 * 1024 * 1024, ...options })
  if (done.status !== 0) throw new Error(`${file} ${args.join(' ')} failed: ${String(done.stderr ?? done.error)}`)
  return done.stdout
}

/** Builds a commit in `folder` with the packages of this checkout. Returns the path of its checkout. */
export function buildCommit(commit, folder) {
  const checkout = join(folder, 'before-source')
  mkdirSync(checkout)
  run('tar', ['-x', '-C', checkout], { input: run('git', ['archive', commit], { cwd: root }) })
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  run(process.execPath, [join(checkout, 'scripts', 'build.mjs')], { cwd: checkout })
  return checkout
}

/** Returns the two builds as contenders. `databaseOf` returns the URL of an empty database of that name, or null for the embedded one. */
export function comparedBuilds({ checkout, commit, databaseOf, settings = {} }) {
  const build = (name, title, folder) => ({
    name,
    title,
    start: async ({ upstreamUrl, folder: data }) =>
      startBrigade({ upstreamUrl, folder: data, name, databaseUrl: databaseOf === null ? null : await databaseOf(name), settings, checkout: folder }),
  })
  return [build('before', `Brigade at ${commit}`, checkout), build('after', 'Brigade at this checkout', root)]
}

/** The compared figures. Each has a heading, a function that reads its value from a result, and whether a higher value is worse. */
const figures = [
  ['processor time a call', result => result.cpuUsOfCall, true],
  ['of the main thread', result => result.mainThreadCpuUsOfCall, true],
  ['throughput', result => result.callsPerS, false],
  ['garbage a call', result => result.garbageKibOfCall, true],
  ['loop delay p99', result => result.loopDelayP99Ms, true],
]

const percent = ratio => `${ratio >= 1 ? '+' : ''}${((ratio - 1) * 100).toFixed(1)} %`

function verdictOf({ low, high }, isWorseWhenMore) {
  if (low > 1) return isWorseWhenMore ? 'worse' : 'better'
  if (high < 1) return isWorseWhenMore ? 'better' : 'worse'
  return 'no difference shown'
}

/** Returns one row for each scenario and figure: the median ratio of the starts, its bounds, and the verdict. `before` and `after` have one contestant for each start. */
export function comparisonOf(before, after, scenarios) {
  return scenarios.flatMap(({ name, title }) =>
    figures.flatMap(([figure, read, isWorseWhenMore]) => {
      const [older, newer] = [before, after].map(starts => starts.map(contestant => median(resultsOf(contestant, name).map(read))))
      const ratios = newer.map((value, start) => value / older[start]).filter(ratio => Number.isFinite(ratio) && ratio > 0)
      const bounds = medianBounds(ratios)
      if (bounds === null) return []
      return [
        { scenario: title, figure, before: median(older), after: median(newer), ratio: median(ratios), ...bounds, verdict: verdictOf(bounds, isWorseWhenMore) },
      ]
    }),
  )
}

/** Returns the rows of `comparisonOf` as Markdown. */
export const comparisonTable = rows =>
  table(
    ['scenario', 'figure', 'before', 'after', 'difference', 'between', 'verdict'],
    rows.map(({ scenario, figure, before, after, ratio, low, high, verdict }) => [
      scenario,
      figure,
      before.toFixed(1),
      after.toFixed(1),
      percent(ratio),
      `${percent(low)} and ${percent(high)}`,
      verdict,
    ]),
  )
