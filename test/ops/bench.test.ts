/** Checks that the bench measures what it promises, on the built gateway. It does not check how fast the gateway is on this machine. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { medianBounds } from '../../bench/statistics.mjs'
import { toolVerdicts } from '../../bench/tools.mjs'
import { root } from '../../scripts/paths.mjs'

interface Summary {
  readonly name: string
  readonly [measure: string]: number | string | null
}
interface Verdict {
  readonly measure: string
  readonly of: string
  readonly least: number | null
  readonly most: number | null
  readonly value: number
  readonly verdict: string
}

const benchDeadlineMs = 120_000
const results = mkdtempSync(join(tmpdir(), 'brigade-bench-test-'))
afterAll(() => rmSync(results, { recursive: true, force: true }))

function bench(...args: readonly string[]): string {
  const options = { cwd: root, encoding: 'utf8' as const, stdio: ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore'] }
  return execFileSync(process.execPath, ['bench/bench.mjs', '--quick', '--seconds', '2', '--results', results, ...args], options)
}

describe('npm run bench', () => {
  test('FAST-04 prints processor time per call, loop delay p99, garbage per call, idle and peak memory, and a verdict for each limit in bars.json', {
    timeout: benchDeadlineMs,
  }, () => {
    const printed = bench('--rounds', '1', '--only', 'brigade', '--scenarios', 'chat-50', '--slow-streams', '0')
    for (const head of ['processor time a call', 'loop delay p99', 'garbage a call', 'resident memory: after the start', 'peak of the run'])
      expect(printed).toContain(head)
    const { summary, verdicts } = JSON.parse(readFileSync(join(results, 'latest.json'), 'utf8')) as {
      readonly summary: readonly Summary[]
      readonly verdicts: readonly Verdict[]
    }
    const brigade = summary.find(({ name }) => name === 'brigade')
    for (const measure of ['loopDelayP99Ms', 'garbageKibOfCall', 'rssIdleMib', 'rssPeakMib', ...(process.platform === 'linux' ? ['cpuOfCall'] : [])])
      expect(brigade?.[measure], measure).toBeGreaterThan(0)
    const bars = JSON.parse(readFileSync(join(root, 'bench', 'bars.json'), 'utf8')) as readonly Pick<Verdict, 'measure' | 'of'>[]
    const measured = bars.filter(({ of, measure }) => of === 'brigade' && (brigade?.[measure] ?? null) !== null)
    expect(measured.length).toBeGreaterThan(0)
    expect(verdicts.map(({ measure, of }) => ({ measure, of }))).toEqual(measured.map(({ measure, of }) => ({ measure, of })))
    for (const { value, least, most, verdict } of verdicts) {
      const isMet = value >= (least ?? Number.NEGATIVE_INFINITY) && value <= (most ?? Number.POSITIVE_INFINITY)
      expect(verdict).toBe(isMet ? 'met' : 'missed')
    }
  })

  test('each bar of the tool gateway gets a verdict, and a figure that was not measured misses it', () => {
    const names = toolVerdicts({}).map(({ measure }: { measure: string }) => measure)
    expect(names).toContain('cutThereP99Ms')
    expect(toolVerdicts({}).every(({ verdict }: { verdict: string }) => verdict === 'missed')).toBe(true)
    const best = Object.fromEntries(names.map((name: string) => [name, name === 'callsPerS' ? 5000 : 0]))
    expect(toolVerdicts(best).every(({ verdict }: { verdict: string }) => verdict === 'met')).toBe(true)
    expect(toolVerdicts({ ...best, addedP50Ms: 3.1 }).find(({ measure }: { measure: string }) => measure === 'addedP50Ms')?.verdict).toBe('missed')
  })

  test('the bounds of a median come from the sign test, and fewer than six values have no bounds', () => {
    expect(medianBounds([1, 2, 3, 4, 5])).toBeNull()
    expect(medianBounds([6, 1, 5, 2, 4, 3])).toEqual({ low: 1, high: 6 })
    // Of ten values, the median is between the second and the ninth with a probability of 97.9 %, and between the third and the eighth with 89.1 %.
    expect(medianBounds([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])).toEqual({ low: 2, high: 9 })
  })
})
