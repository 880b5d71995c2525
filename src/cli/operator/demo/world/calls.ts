/** The calls of the demonstration. Each one goes through the limits engine, so budgets, usage and reports agree to the micro-rupee, as those of real calls do. */
import type { App } from '../../../../composition/gateway.ts'
import type { UsageEvent } from '../../../../gateway/usage/events/record.ts'
import { TriedText } from '../../../../gateway/usage/events/tried-routes.ts'
import type { BearerPrincipal } from '../../../../platform/security/principal.ts'
import { systemIds } from '../../../../platform/values/ids.ts'
import { type CastModel, downProvider } from './cast.ts'
import type { MovedClock } from './moved-clock.ts'
import type { Seeded } from './seeded.ts'

/** Somebody or something that makes calls. */
export interface Caller {
  readonly principal: BearerPrincipal
  readonly agentId: number | null
  readonly ancestorIds: readonly number[]
  readonly models: readonly CastModel[]
  /** Calls on a working day. */
  readonly calls: number
}

const hourMs = 3600_000
/** The share of a working day's calls that falls into each hour of it, in India: a night with little, a morning and an afternoon. */
const hourWeights = [1, 1, 1, 1, 1, 2, 3, 5, 8, 12, 14, 13, 9, 10, 14, 14, 12, 9, 7, 5, 4, 3, 2, 1]
const weekendShare = 0.25
/** The whole organisation makes this share more calls each day than the day before. */
const growth = 0.012
/** On this day the first caller made many times its usual calls. */
const runawayDay = 23
const runawayFactor = 6

export interface DayOfCalls {
  /** Number of the day, from 0. */
  readonly day: number
  /** The instant at which the IST day begins. */
  readonly startMs: number
  /** No call is made after this instant. */
  readonly endMs: number
  readonly isWeekend: boolean
}

/** Something that is done at an instant. */
export interface Planned {
  readonly atMs: number
  run(): Promise<void>
}

interface World {
  readonly app: App
  readonly clock: MovedClock
  readonly random: Seeded
  readonly callers: readonly Caller[]
  /** What else is done on any day. */
  readonly others: readonly Planned[]
}

/** Makes the calls of one day, and whatever else is planned for it, in the order of their times. Returns the number of calls. */
export async function makeDay({ app, clock, random, callers, others }: World, day: DayOfCalls): Promise<number> {
  const calls: Planned[] = callers.flatMap((caller, index) => {
    const factor = (day.isWeekend ? weekendShare : 1) * (1 + growth * day.day) * (day.day === runawayDay && index === 0 ? runawayFactor : 1)
    return Array.from({ length: Math.round(random.around(caller.calls * factor, 0.25)) }, () => {
      const atMs = timeIn(day, random)
      return { atMs, run: () => makeCall(app, random, caller, atMs) }
    })
  })
  const made = calls.filter(({ atMs }) => atMs < day.endMs)
  const ofDay = [...made, ...others.filter(({ atMs }) => atMs >= day.startMs && atMs < day.endMs)].sort((a, b) => a.atMs - b.atMs)
  for (const { atMs, run } of ofDay) {
    clock.moveTo(atMs)
    await run()
  }
  await app.limits.flushNow()
  return made.length
}

function timeIn({ startMs }: DayOfCalls, random: Seeded): number {
  const hour = random.pick([...hourWeights.keys()], each => hourWeights[each] ?? 0)
  return Math.floor(startMs + (hour + random.next()) * hourMs)
}

async function makeCall(app: App, random: Seeded, caller: Caller, atMs: number): Promise<void> {
  const { principal, agentId, ancestorIds } = caller
  const eventId = systemIds.uuidv7(atMs)
  const event = eventOf(random, caller, eventId, atMs)
  const { valueUinr } = event
  if (principal.keyId !== null) app.keys.use.note(principal.keyId)
  const permit = await app.limits.admit({ principal, eventId, agentId, agentAncestorIds: ancestorIds, needUinr: valueUinr, worstUinr: valueUinr })
  await permit.open(event)
  await permit.settle(event)
}

/** The ends of calls, and how many of a thousand calls end so. */
const ends = [
  { outcome: 'ok', status: 200, share: 968 },
  { outcome: 'failed', status: 502, share: 12 },
  { outcome: 'failed', status: 429, share: 8 },
  { outcome: 'client_gone', status: 200, share: 8 },
  { outcome: 'upstream_broke', status: 200, share: 4 },
] as const
const failoverShare = 0.015

function eventOf(random: Seeded, { principal, agentId, models }: Caller, id: string, atMs: number): UsageEvent {
  const model = random.pick(models)
  const { outcome, status } = random.pick(ends, end => end.share)
  const isFailed = outcome === 'failed'
  const promptTokens = isFailed ? 0 : Math.round(random.around(2_400, 0.8))
  const completionTokens = isFailed ? 0 : Math.round(random.around(420, 0.7) * (outcome === 'ok' ? 1 : 0.4))
  const cachedTokens = random.next() < 0.3 ? Math.round(promptTokens * 0.6) : 0
  const latencyMs = Math.round(random.around(model.latencyMs, 0.45))
  const streamed = random.next() < 0.6
  // Tokens times rupees for a million of them are micro-rupees.
  const valueUinr = BigInt(Math.round(promptTokens * model.inputInr + completionTokens * model.outputInr))
  const dials = isFailed || random.next() < failoverShare ? 2 : 1
  return {
    id,
    atMs,
    requestId: `req_${id.replaceAll('-', '').slice(-24)}`,
    orgId: principal.orgId,
    userId: principal.userId,
    keyId: principal.keyId,
    workspaceId: principal.workspaceId,
    agentId,
    agentLabel: null,
    kind: model.provider === 'anthropic' && streamed ? 'messages' : 'chat',
    model: model.id,
    provider: model.provider,
    residency: model.residency,
    streamed,
    byok: false,
    status,
    outcome,
    promptTokens,
    completionTokens,
    cachedTokens,
    cacheWriteTokens: 0,
    images: 0,
    audioSeconds: 0,
    characters: 0,
    reasoningTokens: model.provider === 'google' ? Math.round(completionTokens * 0.3) : 0,
    estimated: false,
    valueUinr,
    costUinr: valueUinr,
    latencyMs,
    firstByteMs: isFailed ? null : Math.round(latencyMs * (streamed ? 0.25 : 0.95)),
    ...(dials > 1 ? { tried: triedText(model, status, dials, random) } : {}),
  }
}

function triedText(model: CastModel, status: number, dials: number, random: Seeded): string {
  const tried = new TriedText()
  tried.add({
    provider: downProvider,
    model: model.id,
    residency: 'global',
    byok: false,
    reason: String(status === 429 ? 429 : 503),
    ms: random.around(180, 0.5),
  })
  return tried.textOf(dials)
}
