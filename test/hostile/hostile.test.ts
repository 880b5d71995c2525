import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { type HostileCase, isAnswered } from './cases.ts'
import { bodyCases } from './cases-bodies.ts'
import { generatedCases, seed } from './cases-generated.ts'
import { storeCases } from './cases-stores.ts'
import { streamCases } from './cases-streams.ts'
import { turnCases } from './cases-turns.ts'
import { type Field, heapMb, pauseMaxMs, type Seen, startField } from './field.ts'

const isShort = process.env['HOSTILE_FORM'] === 'short'
/** A row without hostile work. The other rows are compared with it. */
const quiet: HostileCase = { name: 'nothing hostile', isShort: true, run: () => systemClock.sleep(isShort ? 3000 : 10_000).then(() => []) }
const all: readonly HostileCase[] = [quiet, ...bodyCases, ...streamCases, ...turnCases, ...storeCases, ...generatedCases]
const only = process.env['HOSTILE_ONLY'] ?? ''
// The quiet row always runs, because the limit of the other rows depends on it.
const cases = all.filter(one => one === quiet || ((!isShort || one.isShort) && one.name.includes(only)))

/** A slow machine blocks the event loop by itself. This many times its pause in the quiet row is added to the limit, which at most doubles. */
const quietPauses = 3

const quantile = (sorted: readonly number[], share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
const ms = (value: number): string => `${Math.round(value)} ms`
const mb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`

function figures({ times, pauseMs, wallMs, rss, heapUsed }: Seen): string {
  const sorted = [...times].sort((a, b) => a - b)
  const honest = `honest p50 ${ms(quantile(sorted, 0.5))}, p99 ${ms(quantile(sorted, 0.99))}, max ${ms(sorted.at(-1) ?? 0)} (${sorted.length} calls)`
  return `pause ${ms(pauseMs)} (with waits for a processor ${ms(wallMs)}); ${honest}; memory ${mb(rss)}, heap ${mb(heapUsed)}`
}

describe('HARD-01 HARD-02 HARD-03 HARD-04 HARD-10 with hostile bodies, providers and stores the gateway keeps running and serves others', () => {
  let field: Field
  const whole: { times: number[]; pauseMs: number; wallMs: number; rss: number; heapUsed: number; lost: string[] } = {
    times: [],
    pauseMs: 0,
    wallMs: 0,
    rss: 0,
    heapUsed: 0,
    lost: [],
  }
  const failed: string[] = []
  let survived = 0
  let barMs = pauseMaxMs

  beforeAll(async () => {
    field = await startField()
    // Waits because the first calls load code.
    await systemClock.sleep(3000)
  }, 180_000)
  afterAll(async () => {
    console.log(`\nhonest callers and the gateway over all rows: ${figures(whole)}; lost ${whole.lost.length}`)
    for (const line of failed) console.log(`NOT SURVIVED ${line}`)
    console.log(`${survived} of ${cases.length} survived (heap ${heapMb} MB, pause at most ${ms(barMs)}, HOSTILE_SEED=${seed})\n`)
    await field?.stop()
  }, 60_000)

  interface Outcome {
    readonly problems: readonly string[]
    /** True: the pause of the event loop is the only failure. */
    readonly isPauseAlone: boolean
  }

  async function outcomeOf(one: HostileCase): Promise<Outcome> {
    await field.revive()
    await field.mark()
    const got = await one.run(field)
    const seen = await field.seen()
    if (one === quiet) barMs = pauseMaxMs + Math.min(pauseMaxMs, quietPauses * seen.pauseMs)
    const broken = got.filter(answer => !(one.expects ?? isAnswered)(answer)).map(answer => `${answer.status} ${answer.text.slice(0, 160)}`)
    const held = seen.pauseMs > barMs ? [`the loop was held for ${ms(seen.pauseMs)}`] : []
    const others = [
      ...(field.isAlive() ? [] : [`the process died: ${field.output()}`]),
      ...(seen.lost.length > 0 ? [`${seen.lost.length} honest calls were lost, the first: ${seen.lost[0]}`] : []),
      ...(broken.length > 0 ? [`${broken.length} of ${got.length} answers were others than promised, the first: ${broken[0]}`] : []),
    ]
    const problems = [...held, ...others]
    const counts = new Map<number, number>()
    for (const { status } of got) counts.set(status, (counts.get(status) ?? 0) + 1)
    const statuses = [...counts].map(([status, count]) => `${status}×${count}`)
    console.log(`${problems.length === 0 ? 'ok ' : 'NO '} ${one.name}: ${figures(seen)}; answers ${statuses.join(' ')}`)
    whole.times.push(...seen.times)
    whole.lost.push(...seen.lost)
    for (const figure of ['pauseMs', 'wallMs', 'rss', 'heapUsed'] as const) whole[figure] = Math.max(whole[figure], seen[figure])
    return { problems, isPauseAlone: held.length > 0 && others.length === 0 }
  }

  test.each(cases)('$name', { timeout: 300_000 }, async one => {
    const first = await outcomeOf(one)
    let { problems } = first
    // A second run distinguishes hostile work, which blocks the loop every time, from other work of the machine.
    if (first.isPauseAlone) {
      console.log(`once more: ${one.name}`)
      problems = (await outcomeOf(one)).problems
    }
    if (problems.length === 0) survived++
    else failed.push(`${one.name}: ${problems.join('; ')}`)
    expect(problems, one.name).toEqual([])
  })
})
