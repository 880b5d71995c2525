/** The arithmetic of holds and charges for any price and usage, and a meter that ends its call exactly once. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Model, RoutePrice } from '../../../src/gateway/catalog/model.ts'
import { cappedAt, firstHoldTokens, holdOf } from '../../../src/gateway/inference/charge/estimate.ts'
import { Meter, type MeterInput } from '../../../src/gateway/inference/charge/meter.ts'
import { outputTokensFor, priceHeld, priceTokens } from '../../../src/gateway/inference/charge/price.ts'
import { chatKind } from '../../../src/gateway/inference/kinds/chat.ts'
import type { Permit } from '../../../src/gateway/limits/engine/admission.ts'
import type { Attempt } from '../../../src/gateway/routing/plan.ts'
import type { UsageEvent } from '../../../src/gateway/usage/events/record.ts'
import { noUsage, plainUsage, type TokenUsage } from '../../../src/gateway/wire/usage.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { propertyRuns } from '../../harness/property-runs.ts'

const uinr = fc.bigInt({ min: 0n, max: 20_000_000_000n })
const prices: fc.Arbitrary<RoutePrice> = fc.record({
  inputUinrPerMtok: uinr,
  outputUinrPerMtok: uinr,
  cachedInputUinrPerMtok: fc.option(uinr),
  cacheWriteUinrPerMtok: fc.option(uinr),
  uinrPerImage: fc.bigInt({ min: 0n, max: 50_000_000n }),
  source: fc.constant('test'),
  asOf: fc.constant('2026-01-01'),
})
const count = fc.oneof(fc.nat(50), fc.nat(200_000), fc.nat(1_000_000_000))
/** Usages whose parts of the prompt do not overlap, as every usage reader makes them. */
const usages: fc.Arbitrary<TokenUsage> = fc
  .record({
    fresh: count,
    cachedTokens: count,
    cacheWriteTokens: count,
    completionTokens: count,
    images: fc.nat(4),
    audioSeconds: fc.nat(90_000),
    characters: fc.nat(4096),
  })
  .map(({ fresh, images, audioSeconds, characters, ...tokens }) => ({
    ...tokens,
    promptTokens: fresh + tokens.cachedTokens + tokens.cacheWriteTokens,
    reasoningTokens: 0,
    media: { images, audioSeconds, characters },
  }))

/** Rounds half up with integers only. */
const rounded = (exact: bigint): bigint => (exact + 500_000n) / 1_000_000n

describe('the cost of a call', () => {
  test('every token is charged at one price, and the sum is rounded once', () => {
    fc.assert(
      fc.property(prices, usages, (price, usage) => {
        const { promptTokens, cachedTokens, cacheWriteTokens, completionTokens, media } = usage
        const input = price.inputUinrPerMtok
        const exact =
          BigInt(promptTokens - cachedTokens - cacheWriteTokens) * input +
          BigInt(cachedTokens) * (price.cachedInputUinrPerMtok ?? input) +
          BigInt(cacheWriteTokens) * (price.cacheWriteUinrPerMtok ?? input) +
          BigInt(completionTokens) * price.outputUinrPerMtok +
          BigInt(media?.images ?? 0) * price.uinrPerImage * 1_000_000n +
          BigInt((media?.audioSeconds ?? 0) + (media?.characters ?? 0)) * input
        expect(priceTokens(price, usage)).toBe(rounded(exact))
      }),
    )
  })

  test('cached tokens are never counted twice, even if the usage has more of them than prompt tokens', () => {
    fc.assert(
      fc.property(prices, count, count, count, (price, promptTokens, cachedTokens, cacheWriteTokens) => {
        const cost = priceTokens(price, { ...plainUsage(promptTokens, 0), cachedTokens, cacheWriteTokens })
        const all = [price.inputUinrPerMtok, price.cachedInputUinrPerMtok, price.cacheWriteUinrPerMtok].flatMap(each => (each === null ? [] : [each]))
        const dearest = all.reduce((most, each) => (each > most ? each : most))
        const cheapest = all.reduce((least, each) => (each < least ? each : least))
        expect(cost <= rounded(BigInt(promptTokens) * dearest)).toBe(true)
        expect(cost >= rounded(BigInt(promptTokens) * cheapest)).toBe(true)
      }),
    )
  })

  test('the hold is sufficient for any share of cache reads and writes in the prompt', () => {
    fc.assert(
      fc.property(prices, usages, (price, usage) => {
        expect(
          priceHeld(price, {
            ...plainUsage(usage.promptTokens, usage.completionTokens),
            media: usage.media ?? { images: 0, audioSeconds: 0, characters: 0 },
          }) >= priceTokens(price, usage),
        ).toBe(true)
      }),
    )
  })

  test('the tokens that an amount pays for cost at most the amount, and more tokens cost more', () => {
    fc.assert(
      fc.property(prices, fc.bigInt({ min: 0n, max: 10_000_000_000n }), fc.nat(200_000), (price, amount, promptTokens) => {
        fc.pre(price.outputUinrPerMtok > 0n)
        const tokens = outputTokensFor(amount, price, plainUsage(promptTokens, 0))
        fc.pre(tokens < Number.MAX_SAFE_INTEGER / 2)
        if (tokens > 0) expect(priceHeld(price, plainUsage(promptTokens, tokens)) <= amount).toBe(true)
        expect(priceHeld(price, plainUsage(promptTokens, tokens + 2 + Math.ceil(1e6 / Number(price.outputUinrPerMtok)))) > amount || amount === 0n).toBe(true)
      }),
    )
  })

  test('a hold is at most the worst case, the worst case covers every answer, and a charge ends at max_tokens', () => {
    const request = fc.record({
      maxTokens: fc.option(fc.integer({ min: 1, max: 1_000_000 })),
      answers: fc.integer({ min: 1, max: 128 }),
      stream: fc.boolean(),
      promptTokens: fc.nat(200_000),
      asksThought: fc.boolean(),
    })
    const models = fc.record({ maxOutputTokens: fc.option(fc.integer({ min: 1, max: 200_000 })), reasoning: fc.boolean() })
    fc.assert(
      fc.property(prices, request, models, count, (price, asked, model, completionTokens) => {
        const plan = { model, attempts: [attemptOf(price, model)], headers: {} } as unknown as Parameters<typeof holdOf>[2]
        const parsed = asked as unknown as Parameters<typeof holdOf>[1]
        const { needUinr, worstUinr } = holdOf(chatKind, parsed, plan)
        expect(needUinr <= worstUinr).toBe(true)
        expect(firstHoldTokens(chatKind, asked, attemptOf(price, model))).toBeGreaterThan(0)
        const most = asked.maxTokens ?? (model.maxOutputTokens === null ? null : model.maxOutputTokens * asked.answers)
        if (most === null) return
        const used = cappedAt(plainUsage(asked.promptTokens, Math.min(completionTokens, most)), asked.maxTokens)
        expect(priceTokens(price, used) <= worstUinr).toBe(true)
        expect(cappedAt(plainUsage(0, completionTokens), asked.maxTokens).completionTokens).toBeLessThanOrEqual(asked.maxTokens ?? completionTokens)
      }),
    )
  })
})

const attemptOf = (price: RoutePrice, model: object, byok = false): Attempt =>
  ({
    route: { price, modelId: 'm', provider: { id: 'p', quirks: [] }, residency: 'global' },
    model: model as Model,
    credential: null,
    byok,
  }) as unknown as Attempt

/** Records how a call ended. Throws when it ends twice. */
class Ledger implements Permit<UsageEvent> {
  readonly eventId = 'e'
  readonly heldUinr = 0n
  readonly refusedBy = null
  readonly strictUinr = null
  readonly balanceLeftUinr = null
  readonly agentRemainingUinr = null
  readonly runRemainingUinr = null
  readonly runSpentUinr = null
  readonly runCallsRemaining = null
  readonly admittedAtMs = 0
  readonly ends: (UsageEvent | 'released')[] = []
  open = () => Promise.resolve()
  extendTo = () => true
  progress() {
    expect(this.ends).toEqual([])
  }
  settle(event: UsageEvent) {
    this.ends.push(event)
    expect(this.ends).toHaveLength(1)
    return Promise.resolve()
  }
  release() {
    this.ends.push('released')
    expect(this.ends).toHaveLength(1)
  }
}

describe('the meter of a call', () => {
  const steps = fc.array(fc.constantFrom('opens', 'dials', 'fails', 'first-byte', 'settle', 'failed', 'abandoned', 'release'), { maxLength: 12 })
  test('a call ends once: it is released before a provider call, free when no provider worked, and otherwise charged', () => {
    fc.assert(
      fc.property(prices, steps, usages, fc.boolean(), fc.option(fc.integer({ min: 1, max: 100_000 })), (price, order, usage, byok, maxTokens) => {
        const ledger = new Ledger()
        const request = {
          promptTokens: 1000,
          maxTokens,
          modelId: 'm',
          stream: false,
          media: { images: 2, audioSeconds: 0, characters: 0 },
          answers: 1,
        }
        const input = {
          kind: chatKind,
          request,
          principal: { orgId: 1, userId: 1, keyId: 1, workspaceId: null },
          agent: { agentId: null, label: null },
          startedAtMs: 0,
        }
        // No time passes, so that a whole reply that is abandoned has no assumed output.
        const meter = new Meter(ledger, input as unknown as MeterInput, { ...systemClock, monotonicMs: () => 1 })
        let isOpen = false
        let isDialed = false
        let works = false
        let expected: bigint | 'released' | null = null
        for (const step of order) {
          const ends = (charge: bigint | 'released'): void => {
            expected ??= charge
          }
          if (step === 'opens' && !meter.ended) void meter.opens(attemptOf(price, {}, byok))
          if (step === 'opens' && !meter.ended) isOpen = true
          if (step === 'dials' && isOpen && !meter.ended) {
            meter.dials()
            isDialed = true
            works = true
          }
          if (step === 'fails' && works) {
            meter.routeFailed('transient')
            works = false
          }
          if (step === 'first-byte') meter.firstByte()
          if (step === 'settle' && isDialed) {
            ends(priceTokens(price, cappedAt(usage, maxTokens)))
            void meter.settle(usage, false, 'ok', 200)
          }
          if (step === 'failed') {
            ends(isDialed ? 0n : 'released')
            void meter.settleFailed(502)
          }
          if (step === 'abandoned') {
            const worked = priceTokens(price, { ...noUsage, promptTokens: 1000, media: { ...request.media, images: 0 } })
            ends(isDialed ? (works ? worked : 0n) : 'released')
            void meter.settleAbandoned(499, 'client_gone')
          }
          if (step === 'release' && !isDialed) {
            ends('released')
            meter.release()
          }
        }
        const [end] = ledger.ends
        expect(ledger.ends.length).toBe(expected === null ? 0 : 1)
        if (end === undefined || end === 'released') expect(end ?? null).toBe(expected)
        else expect([end.valueUinr, end.costUinr]).toEqual([expected, byok ? 0n : expected])
      }),
      { numRuns: propertyRuns(500) },
    )
  })
})
