/** Tries configured routes with three small calls each: one token, one stream, one tool call. The operator pays for them, so they have a bound of cost and time. */
import { Cancellation } from '../../../platform/loop/cancellation.ts'
import { isObject, parsedObject } from '../../../platform/values/json.ts'
import { isSandbox } from '../../catalog/loading/sandbox.ts'
import type { Model, Route } from '../../catalog/model.ts'
import { onPlatform } from '../../routing/candidates.ts'
import type { TokenUsage } from '../../wire/usage.ts'
import { priceHeld, priceTokens } from '../charge/price.ts'
import type { InferenceDeps } from '../deps.ts'
import { chatKind } from '../kinds/chat.ts'
import { embeddingsKind } from '../kinds/embeddings.ts'
import type { Kind } from '../kinds/kind.ts'
import type { ParsedRequest } from '../kinds/request.ts'
import { type StreamAnswer, takeFirst } from '../replies/answer.ts'
import { attemptOnce, type ProbeFailure } from './probe.ts'

/** What is tried on a route. */
type RouteCheckName = 'one token' | 'stream' | 'tool call' | 'embedding'

/** The result of one call. `failed` is a stable word of the gateway and contains no text of a provider. */
export interface RouteCheck {
  readonly name: RouteCheckName
  readonly failed: ProbeFailure | 'no_tool_call' | 'no_end' | null
  readonly latencyMs: number
  /** The price of the reported usage in micro-rupees: what the provider charges by the catalog's prices. */
  readonly costUinr: bigint
}

/** A tried route. `skipped` says why its other calls were not made. */
export interface ProbedRoute {
  readonly provider: string
  readonly model: string
  readonly checks: readonly RouteCheck[]
  readonly skipped: 'cost' | 'time' | 'kind' | null
}

export interface RouteProbeBounds {
  /** The most that all calls together may cost, in micro-rupees. A call whose worst cost exceeds what is left is not made. */
  readonly costMaxUinr: bigint
  /** The longest time of all calls together. */
  readonly timeMaxMs: number
  /** Only routes of this provider, or of this model. Null: all. */
  readonly only: string | null
}

/** The longest time of one call. */
const callMaxMs = 20_000
/** Calls that run concurrently. */
const runningMax = 6
/** Upper bound of the routes of one probe. */
const routesMax = 500
const streamMaxBytes = 1024 * 1024
/** The most output tokens of a call, and the tokens that a prompt of ours can have. */
const outputMax = 64
const promptMost = 400

const prompt = [{ role: 'user', content: 'ping' }]
const tool = { type: 'function', function: { name: 'ping', description: 'Answers pong.', parameters: { type: 'object', properties: {} } } }
const bodies: Readonly<Record<RouteCheckName, object>> = {
  'one token': { messages: prompt, max_tokens: 1 },
  stream: { messages: prompt, max_tokens: 16, stream: true },
  'tool call': { messages: prompt, max_tokens: outputMax, tools: [tool], tool_choice: { type: 'function', function: { name: 'ping' } } },
  embedding: { input: 'ping' },
}

/** Returns the routes that the platform serves with its own keys and identities, in the order of the catalog. The sandbox is simulated, so it is left out. */
function configuredRoutes(models: Iterable<Model>, only: string | null): readonly { readonly model: Model; readonly route: Route }[] {
  const routes = [...models].flatMap(model => (model.kind === 'virtual' ? [] : model.routes.map(route => ({ model, route }))))
  return routes
    .filter(({ route: { provider, byokOnly } }) => provider.configured && !byokOnly && provider.userGiven !== true && !isSandbox(provider))
    .filter(({ model, route }) => only === null || model.id === only || route.provider.id === only)
    .slice(0, routesMax)
}

/** Tries the routes. The calls leave no record: they are not metered, billed, logged or reported to circuits. Never rejects for a route that fails. */
export async function probeRoutes(models: Iterable<Model>, bounds: RouteProbeBounds, deps: InferenceDeps): Promise<readonly ProbedRoute[]> {
  const run = new ProbeRun(bounds, deps)
  const routes = configuredRoutes(models, bounds.only)
  const made: ProbedRoute[] = []
  const left = routes.entries()
  const worker = async (): Promise<void> => {
    for (const [index, { model, route }] of left) made[index] = await run.tried(model, route)
  }
  await Promise.all(Array.from({ length: runningMax }, worker))
  return made
}

class ProbeRun {
  readonly #deps: InferenceDeps
  readonly #endMs: number
  /** What the calls may still cost. Running calls have taken the most that they can cost. */
  #leftUinr: bigint

  constructor({ costMaxUinr, timeMaxMs }: RouteProbeBounds, deps: InferenceDeps) {
    this.#deps = deps
    this.#leftUinr = costMaxUinr
    this.#endMs = deps.clock.monotonicMs() + timeMaxMs
  }

  async tried(model: Model, route: Route): Promise<ProbedRoute> {
    const checks: RouteCheck[] = []
    const named = { provider: route.provider.id, model: model.id, checks }
    if (model.kind !== 'chat' && model.kind !== 'embedding') return { ...named, skipped: 'kind' }
    const names: RouteCheckName[] = model.kind === 'embedding' ? ['embedding'] : ['one token', 'stream', ...(model.tools ? (['tool call'] as const) : [])]
    for (const name of names) {
      const most = priceHeld(route.price, { ...noTokens, promptTokens: promptMost, completionTokens: outputMax })
      const timeLeftMs = this.#endMs - this.#deps.clock.monotonicMs()
      if (timeLeftMs <= 0) return { ...named, skipped: 'time' }
      if (most > this.#leftUinr) return { ...named, skipped: 'cost' }
      this.#leftUinr -= most
      const check = await this.#checked(name, model, route, Math.min(callMaxMs, timeLeftMs))
      checks.push(check)
      this.#leftUinr += most > check.costUinr ? most - check.costUinr : 0n
      // A route that refuses the plainest call refuses the others for the same reason.
      if (name === 'one token' && check.failed !== null) break
    }
    return { ...named, skipped: null }
  }

  async #checked(name: RouteCheckName, model: Model, route: Route, timeMaxMs: number): Promise<RouteCheck> {
    const { clock } = this.#deps
    const kind: Kind = model.kind === 'embedding' ? embeddingsKind : chatKind
    const body = { model: model.id, ...bodies[name] }
    const request = kind.parse({ bytes: Buffer.from(JSON.stringify(body)), headers: {}, query: '' })
    const cut = new Cancellation()
    const stop = clock.after(timeMaxMs, () => cut.abort(new Error('the call took too long')))
    const begunMs = clock.monotonicMs()
    let found: Outcome
    try {
      found = await this.#called(name, { kind, request, model, route }, cut)
    } catch {
      found = { failed: cut.aborted ? 'timeout' : 'unreachable', usage: null }
    } finally {
      stop()
    }
    const costUinr = found.usage === null ? 0n : priceTokens(route.price, found.usage)
    return { name, failed: found.failed, latencyMs: Math.max(1, Math.round(clock.monotonicMs() - begunMs)), costUinr }
  }

  async #called(name: RouteCheckName, { kind, request, model, route }: Tried, cut: Cancellation): Promise<Outcome> {
    const performed = await attemptOnce(onPlatform(model, route), { kind, request, orgId: ofNobody }, cut, this.#deps)
    if (typeof performed === 'string') return { failed: performed === 'limited' ? null : performed, usage: null }
    const { answer } = performed
    if (answer.kind === 'stream') return readToEnd(answer)
    if (answer.kind !== 'whole') return { failed: 'upstream_error', usage: null }
    return { failed: name === 'tool call' && !callsTool(answer.body) ? 'no_tool_call' : null, usage: answer.usage }
  }
}

/** The calls belong to no organisation. */
const ofNobody = 0

interface Tried {
  readonly kind: Kind
  readonly request: ParsedRequest
  readonly model: Model
  readonly route: Route
}

interface Outcome {
  readonly failed: RouteCheck['failed']
  readonly usage: TokenUsage | null
}

const noTokens: TokenUsage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }

/** Reads a stream to its end. A stream that the provider does not end is a failure. */
async function readToEnd(answer: StreamAnswer): Promise<Outcome> {
  const { adapter, rest, body, held } = answer
  try {
    takeFirst(answer)
    let bytes = 0
    while (!adapter.finished && !adapter.failed && bytes < streamMaxBytes) {
      const next = await rest.next()
      if (next.done === true) break
      bytes += next.value.length
      adapter.push(next.value)
    }
    const { complete } = adapter.end()
    const failed = adapter.failed ? 'upstream_error' : adapter.finished || complete ? null : 'no_end'
    return { failed, usage: adapter.usage() }
  } finally {
    held.release()
    body.destroy()
  }
}

function callsTool(body: Uint8Array): boolean {
  const choices = parsedObject(Buffer.from(body).toString('utf8'))?.['choices']
  const message = Array.isArray(choices) && isObject(choices[0]) ? choices[0]['message'] : null
  const calls = isObject(message) ? message['tool_calls'] : null
  return Array.isArray(calls) && calls.length > 0
}
