/** A call whose caller asks for the reply cache: looks its reply up before admission, and keeps the reply of a provider after it. */
import type { CacheRequest, Call } from '../../../platform/endpoint.ts'
import { Reply, reply } from '../../../platform/endpoint.ts'
import { BodyPieces } from '../../../platform/loop/body-pieces.ts'
import { changedSink, type StreamPump, type StreamSink } from '../../../platform/loop/stream-sink.ts'
import type { CallPolicy } from '../../../platform/security/principal.ts'
import { inrTextOf, uinrFromInr } from '../../../platform/values/money.ts'
import { resolveAsPaid } from '../../routing/payer.ts'
import type { Attempt, Plan } from '../../routing/plan.ts'
import { cacheProviderId, type RunOfCall, type UsageEvent } from '../../usage/events/record.ts'
import { brHeader } from '../../wire/response-headers.ts'
import { type AskedCall, resolveRequestOf } from '../admit-call.ts'
import type { Meter } from '../charge/meter.ts'
import { placeOf } from '../charge/residency.ts'
import { ofOneVendor } from '../conversation/sticky-plan.ts'
import type { InferenceDeps } from '../deps.ts'
import type { Answer } from '../dial.ts'
import { noteLeft } from '../run/left-headers.ts'
import { type FoundReply, type ReplyCache, replyMaxBytes } from './reply-cache.ts'
import { cachedKinds, isStorable, withoutBill } from './storable.ts'

/** A longer request is not cached: to read it again would keep other callers waiting. */
const requestMaxBytes = 1024 * 1024
/** The version of the parts of a key. A new one leaves all earlier replies behind. */
const keyVersion = '1'
/** The headers of a reply that belong to its body. */
const keptHeaders: readonly string[] = ['content-type', brHeader.droppedParams, brHeader.reasoningCapAdvisory, brHeader.imageOptimized]

/** Why a call does not use the cache, for the header of its reply. */
type OffReason = 'no_retention_window' | 'kind' | 'own_credential' | 'too_large' | 'several_answers' | 'temperature' | 'stored_state'

/** The facts about the call beside what it asks. */
interface CallFacts {
  readonly requestId: string
  readonly startedAtMs: number
  readonly run: RunOfCall | null
  readonly isIdempotent: boolean
}

/** A call that the cache can serve now. */
export interface CacheHit {
  readonly kind: 'hit'
  readonly plan: Plan
  readonly reply: Reply
}

/** Returns what the cache does for a call. It throws what the choice of a route throws, and what admission throws for a call that costs nothing. */
export async function openCache(
  wish: CacheRequest,
  asked: AskedCall,
  call: CallFacts & Pick<Call, 'signal'>,
  deps: InferenceDeps,
): Promise<CacheHit | CachedCall | OffCall> {
  const { replyCache } = deps
  const reason = offReasonOf(asked, wish, deps)
  if (replyCache === undefined || reason !== null) return new OffCall(reason ?? 'kind')
  const request = resolveRequestOf(asked)
  const plan = ofOneVendor(resolveAsPaid(asked.principal.isTrial, request, deps.resolve), request)
  const [first] = plan.attempts
  if (first === undefined || first.forwarded === true) return new OffCall('own_credential')
  const { orgId } = asked.principal
  const mac = replyCache.macOf(orgId, keyParts(asked, wish, first, plan, deps))
  const found = wish.mode === 'refresh' ? null : await replyCache.find(orgId, mac, wish.ttlSeconds)
  if (found === null) return new CachedCall(replyCache, wish, asked, mac, first)
  call.signal.throwIfAborted()
  return { kind: 'hit', plan, reply: await serveFound(found, asked, plan, first, call, deps) }
}

/** Returns why the reply of a call is neither looked up nor kept. Null when it may be. */
function offReasonOf({ kind, parsed, org }: AskedCall, { lets }: CacheRequest, { inTurn }: InferenceDeps): OffReason | null {
  if (org.retentionDays === 0) return 'no_retention_window'
  if (!cachedKinds.has(kind.usageKind)) return 'kind'
  if (parsed.forwarded !== null || parsed.fields.upstreamKey !== null) return 'own_credential'
  const { body, bytes } = parsed.native
  if (inTurn !== undefined || (bytes !== null && bytes.length > requestMaxBytes)) return 'too_large'
  if (parsed.answers > 1) return 'several_answers'
  if (isGiven(body['previous_response_id']) || isGiven(body['conversation'])) return 'stored_state'
  const { temperature } = body
  return typeof temperature === 'number' && temperature > 0 && !lets.sampled ? 'temperature' : null
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/**
 * Returns the parts of a key: everything that decides who may see the reply, and everything that decides what it is. Two calls have the same key only when
 * all of it is the same.
 */
export function keyParts(
  asked: AskedCall,
  { lets }: CacheRequest,
  first: Attempt,
  plan: Plan,
  { exact }: Pick<InferenceDeps, 'exact'>,
): readonly (string | Buffer)[] {
  const { kind, parsed, principal, agent } = asked
  const { native, fields, modelId, operation, withholdUsage } = parsed
  const { route, byok } = first
  const text = native.bytes ?? JSON.stringify(native.body)
  return [
    keyVersion,
    agent.agentId === null ? `key:${principal.keyId}:${agent.label ?? ''}` : `agent:${agent.agentId}`,
    JSON.stringify(policiesOf(agent.policies)),
    JSON.stringify([principal.isTrial === true, kind.usageKind, kind.format.id, operation, parsed.stream, withholdUsage, lets]),
    JSON.stringify([modelId, plan.model.id, route.modelId, route.provider.id, route.upstreamModel, route.dialect, byok]),
    JSON.stringify([native.format, native.query, Object.entries(native.headers).sort(), fields.imageOptimize, fields.imageMaxEdge]),
    typeof text === 'string' && exact !== undefined ? exact.restored(text) : text,
  ]
}

const policiesOf = (policies: readonly CallPolicy[]): unknown =>
  policies.map(policy =>
    Object.entries(policy)
      .sort()
      .map(([name, value]) => [name, shown(value)]),
  )
const shown = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_name, each: unknown) => (typeof each === 'bigint' ? String(each) : each)) ?? 'null')

/** Settles a call that the cache serves, and returns the reply. It takes a unit of every limit of requests, and nothing of a budget or the balance. */
async function serveFound(found: FoundReply, asked: AskedCall, plan: Plan, { route, byok }: Attempt, call: CallFacts, deps: InferenceDeps): Promise<Reply> {
  const { principal, agent, eventId, run, parsed } = asked
  const granted = deps.limits.admit({
    principal,
    eventId,
    agentId: agent.agentId,
    agentAncestorIds: agent.ancestorIds,
    policies: agent.policies,
    run,
    needUinr: 0n,
    worstUinr: 0n,
    debitUinr: null,
    isFree: principal.isTrial === true && !byok,
    isCached: true,
  })
  const permit = granted instanceof Promise ? await granted : granted
  const latencyMs = Math.round(deps.clock.monotonicMs() - call.startedAtMs)
  const event: UsageEvent = {
    ...noCost,
    id: permit.eventId,
    atMs: permit.admittedAtMs,
    requestId: call.requestId,
    orgId: principal.orgId,
    userId: principal.userId,
    keyId: principal.keyId,
    workspaceId: principal.workspaceId,
    agentId: agent.agentId,
    agentLabel: agent.label,
    kind: asked.kind.usageKind,
    model: route.modelId,
    // The content went there when the reply was made.
    residency: found.residency as UsageEvent['residency'],
    streamed: parsed.stream,
    savedUinr: found.valueUinr,
    latencyMs,
    ...call.run,
    ...(call.isIdempotent ? { idempotent: true } : {}),
  }
  deps.watch?.settled(event)
  await permit.settle(event)
  const headers: Record<string, string> = {
    ...plan.headers,
    ...found.headers,
    [brHeader.provider]: found.provider,
    [brHeader.latencyMs]: String(latencyMs),
    [brHeader.costInr]: '0',
    [brHeader.cache]: 'hit',
    [brHeader.cacheSavedInr]: inrTextOf(found.valueUinr),
    age: String(found.ageSeconds),
  }
  noteLeft(headers, permit, call.run?.runId ?? null)
  const bytes = Buffer.from(found.body)
  if (!parsed.stream) return reply.bytes(bytes, headers)
  const pump: StreamPump = async sink => {
    sink.push(bytes)
  }
  return reply.stream(pump, { ...headers, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' })
}

const noCost = {
  provider: cacheProviderId,
  byok: false,
  status: 200,
  outcome: 'ok',
  promptTokens: 0,
  completionTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  images: 0,
  audioSeconds: 0,
  characters: 0,
  estimated: false,
  valueUinr: 0n,
  costUinr: 0n,
  firstByteMs: null,
} as const

/** Returns the reply with more headers. */
const withHeaders = ({ status, headers, body, cookies }: Reply, more: Readonly<Record<string, string>>): Reply =>
  new Reply(status, { ...headers, ...more }, body, cookies)

/** A call that asks for the cache and cannot use it. */
export class OffCall {
  readonly kind = 'off'
  readonly #reason: OffReason

  constructor(reason: OffReason) {
    this.#reason = reason
  }

  keep(made: Reply): Reply {
    return withHeaders(made, { [brHeader.cache]: 'off', [brHeader.cacheReason]: this.#reason })
  }
}

/** A call whose reply was not found. It keeps the reply that a provider makes, when the planned route made it and it is a complete answer. */
export class CachedCall {
  readonly kind = 'miss'
  readonly #cache: ReplyCache
  readonly #wish: CacheRequest
  readonly #asked: AskedCall
  readonly #mac: Buffer
  readonly #planned: Attempt
  readonly #closings: number

  constructor(cache: ReplyCache, wish: CacheRequest, asked: AskedCall, mac: Buffer, planned: Attempt) {
    this.#cache = cache
    this.#wish = wish
    this.#asked = asked
    this.#mac = mac
    this.#planned = planned
    this.#closings = cache.closings
  }

  /** Keeps a whole reply before it goes out, and a stream while it goes out. */
  async keep(made: Reply, answer: Answer, meter: Meter): Promise<Reply> {
    const { route, byok } = this.#planned
    const isPlanned = answer.attempt.route === route && answer.attempt.byok === byok
    const { body } = made
    const missed = withHeaders(made, { [brHeader.cache]: 'miss' })
    if (!isPlanned) return missed
    if (answer.kind === 'whole' && body.kind === 'bytes') {
      const isKept = await this.#store(body.bytes, made, uinrFromInr(meter.billOf(answer.usage).value_inr), false)
      return isKept ? withHeaders(made, { [brHeader.cache]: 'stored' }) : missed
    }
    if (answer.kind !== 'stream' || body.kind !== 'stream') return missed
    const { pump } = body
    const worthOf = (): bigint => uinrFromInr(meter.billOf(answer.adapter.usage()).value_inr)
    return new Reply(made.status, missed.headers, { ...body, pump: sink => this.#collect(pump, sink, made, worthOf) }, made.cookies)
  }

  /** Passes a stream on and keeps it at its end. The reader has it by then. */
  async #collect(pump: StreamPump, sink: StreamSink, made: Reply, worthOf: () => bigint): Promise<void> {
    const { orgId } = this.#asked.principal
    const pieces = new BodyPieces()
    let held: number | null = 0
    const collected = (chunk: Uint8Array): Uint8Array => {
      if (held === null) return chunk
      if (held + chunk.length <= replyMaxBytes && this.#cache.take(orgId, chunk.length)) {
        held += chunk.length
        pieces.add(Buffer.from(chunk))
      } else {
        this.#cache.give(orgId, held)
        held = null
        pieces.drop()
      }
      return chunk
    }
    try {
      await pump(changedSink(sink, collected))
      if (held !== null && !sink.isGone) await this.#store(pieces.joined(), made, worthOf(), true)
    } finally {
      if (held !== null) this.#cache.give(orgId, held)
    }
  }

  async #store(bytes: Uint8Array, made: Reply, valueUinr: bigint, isStream: boolean): Promise<boolean> {
    const { kind, principal } = this.#asked
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (this.#cache.closings !== this.#closings || body.length > replyMaxBytes || !isStorable(kind.usageKind, body, isStream, this.#wish.lets)) return false
    const headers = Object.fromEntries(Object.entries(made.headers).filter(([name]) => keptHeaders.includes(name)))
    const { route } = this.#planned
    const facts = { valueUinr, residency: placeOf(route), provider: route.provider.id, ttlSeconds: this.#wish.ttlSeconds }
    return await this.#cache.keep(principal.orgId, this.#mac, { headers, body: withoutBill(body.toString('utf8')), ...facts })
  }
}
