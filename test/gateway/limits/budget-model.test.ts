import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AdmissionRequest, Permit } from '../../../src/gateway/limits/admission.ts'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import type { UsageEvent } from '../../../src/gateway/usage/record.ts'
import { type TestDatabase, testDatabase } from '../../harness/database.ts'
import { caller, eventOf, outcomeOf, request, startEngine, type TestEngine } from './engine.ts'

/** What a budget is, in a few lines: a call is let in while something of the cap is neither spent nor held. */
class Model {
  cap: bigint
  spent = 0n
  readonly running: { asked: AdmissionRequest; permit: Permit<UsageEvent>; held: bigint }[] = []
  constructor(cap: bigint) {
    this.cap = cap
  }
  get held(): bigint {
    return this.running.reduce((sum, call) => sum + call.held, 0n)
  }
  get isOpen(): boolean {
    return this.spent + this.held < this.cap
  }
}

const amount = fc.integer({ min: 1, max: 400 })
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('admit' as const), amount }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('settle' as const), amount, which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cover' as const), amount, which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cap' as const), amount: fc.integer({ min: 1, max: 3000 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

let database: TestDatabase
const engines: TestEngine[] = []
beforeAll(async () => {
  database = await testDatabase()
  for (const seconds of ['0', '10']) engines.push(await startEngine(database.db, { env: { ALLOWANCE_SECONDS: seconds } }))
})
afterAll(async () => {
  for (const engine of engines) await engine.stop()
  await database.dispose()
})

async function play(engine: TestEngine, keyId: number, model: Model, next: Step): Promise<void> {
  const principal = caller({ keyId, orgId: keyId, userId: null })
  if (next.kind === 'flush') return engine.limits.flushNow()
  if (next.kind === 'cap') {
    model.cap = BigInt(next.amount)
    return engine.limits.budgets.set(keyId, 'key', String(keyId), model.cap)
  }
  if (next.kind === 'admit') {
    const asked = request(BigInt(next.amount), { principal })
    const isOpen = model.isOpen
    const answer = engine.limits.admit(asked)
    expect(await outcomeOf(answer)).toBe(isOpen ? 'ok' : model.spent >= model.cap ? 'budget_exceeded' : 'budget_held')
    if (isOpen) model.running.push({ asked, permit: await answer, held: BigInt(next.amount) })
    return
  }
  const index = model.running.length === 0 ? -1 : next.which % model.running.length
  const call = model.running[index]
  if (call === undefined) return
  if (next.kind === 'cover') {
    const total = BigInt(next.amount)
    const room = model.cap - model.spent - model.held
    const isCovered = await call.permit.cover(total)
    if (total <= call.held || total - call.held <= room) expect(isCovered).toBe(true)
    call.held = call.permit.heldUinr
    return
  }
  model.running.splice(index, 1)
  if (next.kind === 'release') return call.permit.release()
  void call.permit.open(eventOf(call.asked, 0n))
  await call.permit.settle(eventOf(call.asked, BigInt(next.amount)))
  model.spent += BigInt(next.amount)
}

it.each([0, 1])(
  'a budget lets in exactly what the model lets in, and its sums are those of its events (engine %i)',
  async which => {
    const engine = engines[which] as TestEngine
    let keyId = 100 + which * 100_000
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async steps => {
        keyId++
        const model = new Model(1000n)
        await engine.limits.budgets.set(keyId, 'key', String(keyId), model.cap)
        for (const next of steps) await play(engine, keyId, model, next)
        await engine.limits.flushNow()
        expect((await engine.limits.budgets.get(keyId, 'key', String(keyId))).spentUinr).toBe(model.spent)
        for (const call of model.running) call.permit.release()
        await engine.limits.flushNow()
        expect(await checkInvariants(database.db)).toEqual([])
      }),
      { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 75) },
    )
  },
  120_000,
)
