/** Any order of calls and changed caps, compared with a model of the caps of a run. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

/** A token of the answer on alpha, in micro-rupees. The prompt costs nothing here. */
const tokenUinr = 40
const stepsMax = 18

const calls = fc.integer({ min: 1, max: 9 })
const uinr = fc.integer({ min: 1, max: 4000 })
const orNone = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('call' as const), tokens: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('ask' as const), tokens: fc.integer({ min: 1, max: 30 }), calls: orNone(calls), cost: orNone(uinr) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rule' as const), calls: orNone(calls), cost: orNone(uinr) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      calls: orNone(fc.integer({ min: 1, max: 20 })),
      cost: orNone(fc.integer({ min: 1, max: 8000 })),
    }),
  },
)

/** One cap of a run: the agent's, the lowest that calls asked for, and the run's own. */
class Cap {
  rule: number | null = null
  asked: number | null = null
  own: number | null = null
  used = 0

  ask(value: number | null): void {
    if (value === null || (this.asked !== null && value >= this.asked)) return
    this.asked = value
    if (this.own !== null) this.own = Math.min(this.own, value)
  }

  get isReached(): boolean {
    const least = Math.min(this.rule ?? Number.POSITIVE_INFINITY, this.asked ?? Number.POSITIVE_INFINITY)
    return this.used >= (this.own ?? least)
  }
}

describe('a model of the caps of a run', () => {
  let app: TestApp
  let made = 0
  beforeAll(async () => {
    app = await startApp()
    app.alpha.script(request => ({ usage: { prompt_tokens: 0, completion_tokens: Number(request.json?.['max_tokens']), total_tokens: 0 } }))
  })
  afterAll(() => app.stop())

  test('RUN-02 a call passes exactly while neither cap of its run is reached, for any order of calls and changed caps', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: stepsMax }), async steps => {
        const { id, token } = await app.newAgent(`modelled ${made++}`)
        const [number, cost] = [new Cap(), new Cap()]
        const chat = async (tokens: number, headers: Record<string, string>): Promise<void> => {
          const { status, json } = await app.call(
            'POST',
            '/v1/chat/completions',
            { model: 'alpha-only', max_tokens: tokens, messages: [{ role: 'user', content: 'Hi' }] },
            { token, headers: { 'x-br-run-id': 'run', ...headers } },
          )
          // When both caps are reached, either may speak: a process remembers the one that refused last.
          const expected = [...(number.isReached ? ['run_calls_exceeded'] : []), ...(cost.isReached ? ['run_budget_exceeded'] : [])]
          expect(expected.length === 0 ? ['ok'] : expected).toContain(json.error?.code ?? 'ok')
          expect(status).toBe(expected.length === 0 ? 200 : 429)
          if (expected.length > 0) return
          number.used++
          cost.used += tokens * tokenUinr
        }
        for (const each of steps) {
          if (each.kind === 'call') await chat(each.tokens, {})
          else if (each.kind === 'ask') {
            number.ask(each.calls)
            cost.ask(each.cost)
            await chat(each.tokens, {
              ...(each.calls === null ? {} : { 'x-br-run-max-calls': String(each.calls) }),
              ...(each.cost === null ? {} : { 'x-br-run-max-cost-inr': (each.cost / 1e6).toFixed(6) }),
            })
          } else {
            const caps = { max_calls: each.calls, max_cost_inr: each.cost === null ? null : each.cost / 1e6 }
            const isRule = each.kind === 'rule'
            const reply = isRule
              ? await app.call('PATCH', `/v1/me/agents/${id}`, { run: caps })
              : await app.call('PATCH', `/v1/me/runs/run?agent_id=${id}`, caps)
            expect(reply.status, reply.text).toBe(200)
            if (isRule) [number.rule, cost.rule] = [each.calls, each.cost]
            else [number.own, cost.own] = [each.calls, each.cost]
          }
        }
        const { status, json } = await app.call('GET', `/v1/me/runs/run?agent_id=${id}`)
        if (status === 200) expect([json.calls, Math.round(json.value_inr * 1e6)]).toEqual([number.used, cost.used])
      }),
      { numRuns: propertyRuns(40) },
    )
  })
})
