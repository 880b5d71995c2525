/**
 * Checks the requests of a batch one by one and writes them as the provider gets them. The first request decides about model and route. Nothing of a request
 * is kept but a hash of its custom id and its amounts. Decision 0881 gives the reasons.
 */
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { HeavyTurns } from '../../../platform/loop/heavy-turns.ts'
import { nextTurn } from '../../../platform/loop/next-turn.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { isObject } from '../../../platform/values/json.ts'
import type { RoutePrice } from '../../catalog/model.ts'
import { withoutNativeWithheld, withoutWithheld } from '../../inference/attempt/withheld.ts'
import { withinCallCaps } from '../../inference/charge/call-caps.ts'
import { heldUsage, outputCeiling } from '../../inference/charge/estimate.ts'
import type { ChargedAgent } from '../../inference/charge/meter.ts'
import { priceHeld } from '../../inference/charge/price.ts'
import { parseObject } from '../../inference/kinds/parse-object.ts'
import { type ParsedRequest, routedTokensOf } from '../../inference/kinds/request.ts'
import { refuseUnpricedFiles } from '../../inference/media/file-fees.ts'
import { refuseUnpricedSound } from '../../inference/prompt-most.ts'
import type { Dialect, UpstreamRequest } from '../../providers/dialect.ts'
import type { DialectId } from '../../providers/provider.ts'
import type { OrgRouting } from '../../routing/org-routing.ts'
import type { Attempt, Plan, ResolveRequest } from '../../routing/plan.ts'
import { routerOnlyNames } from '../../wire/chat/router-fields.ts'
import { exactNumbersOf, isHeavy } from '../../wire/json/json-body.ts'
import { topLevelMembers } from '../../wire/json/json-members.ts'
import { inferenceBounds } from '../../wire/json/json-scan.ts'
import { plainUsage } from '../../wire/usage.ts'
import { customIdMaxChars } from '../batch-bounds.ts'
import { batchPriceOf, priceText } from '../batch-price.ts'
import type { BatchKind } from './batch-kind.ts'
import { CustomIds } from './custom-ids.ts'
import type { Line } from './line-reader.ts'

/** The caller of a batch. */
export interface BatchCaller {
  readonly principal: BearerPrincipal
  readonly agent: ChargedAgent
  readonly org: OrgRouting
}

export interface BatchLinesDeps {
  readonly heavyTurns: Pick<HeavyTurns, 'run'>
  resolve(request: ResolveRequest): Plan
  dialectOf(id: DialectId): Dialect
}

/** The amounts of all requests of a batch. */
export interface BatchTotals {
  lines: number
  /** The most that the requests may cost together. */
  holdUinr: bigint
  /** The most that a single one may cost. */
  lineUinr: bigint
  lineOutputTokens: number
}

/** The most bytes of light lines that are checked without a turn for other callers. */
const lightBytesMax = 64 * 1024

/** The two shapes of a request in a batch. */
export interface LineShape {
  /** What the line is called in errors. */
  readonly word: 'Line' | 'Request'
  /** The member with the body of the call. */
  readonly member: 'body' | 'params'
  /** Custom ids that the format allows. */
  readonly idShape: RegExp
}

export const openaiShape: LineShape = { word: 'Line', member: 'body', idShape: /^.+$/su }
export const anthropicShape: LineShape = { word: 'Request', member: 'params', idShape: /^[a-zA-Z0-9_-]{1,64}$/ }

/** The requests of one batch. */
export class BatchLines {
  readonly totals: BatchTotals = { lines: 0, holdUinr: 0n, lineUinr: 0n, lineOutputTokens: 0 }
  readonly #shape: LineShape
  readonly #linesMax: number
  readonly #caller: BatchCaller
  readonly #deps: BatchLinesDeps
  readonly #ids = new CustomIds()
  #kind: BatchKind | null
  #kindOf: (endpoint: string) => BatchKind
  #modelId = ''
  #attempt: Attempt | null = null
  #plan: Plan | null = null
  /** The bytes of light lines since other callers had a turn. */
  #lightBytes = 0

  /** `kind` is null when the lines name their endpoint. */
  constructor(
    shape: LineShape,
    { kind, kindOf, linesMax }: { readonly kind: BatchKind | null; readonly kindOf: (endpoint: string) => BatchKind; readonly linesMax: number },
    caller: BatchCaller,
    deps: BatchLinesDeps,
  ) {
    this.#shape = shape
    this.#kind = kind
    this.#kindOf = kindOf
    this.#linesMax = linesMax
    this.#caller = caller
    this.#deps = deps
  }

  /** The route of the batch, at the prices of batches. Throws before the first request. */
  get attempt(): Attempt {
    if (this.#attempt === null) throw new Error('a batch without a request has no route')
    return this.#attempt
  }

  get kind(): BatchKind {
    if (this.#kind === null) throw new Error('a batch without a request has no kind')
    return this.#kind
  }

  /** The prices of the route, as they are stored. */
  get priceText(): string {
    return priceText(this.attempt.route.price)
  }

  /** Checks a request, in a turn of its organisation when it is heavy. Returns it as the provider gets it. Call it again when the promise has settled. Rejects with the refusals of a call, with the number of the line. */
  async add(line: Line, signal?: CancelSignal): Promise<Buffer> {
    const { bytes } = line
    try {
      if (isHeavy(bytes, inferenceBounds)) return await this.#deps.heavyTurns.run(this.#caller.principal.orgId, () => this.#add(line), signal)
      this.#lightBytes += bytes.length
      if (this.#lightBytes > lightBytesMax) {
        this.#lightBytes = 0
        await nextTurn()
      }
      return this.#add(line)
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      throw fail(error.errorName, { ...error.options, message: `${this.#shape.word} ${line.number}: ${error.message}` })
    }
  }

  #add({ bytes }: Line): Buffer {
    const { totals } = this
    if (totals.lines >= this.#linesMax) throw refused(`A batch may have at most ${this.#linesMax} requests (BATCH_LINES_MAX).`)
    const { member } = this.#shape
    const outer = parseObject(bytes)
    const customId = this.#customId(outer['custom_id'])
    const kind = this.#endpointOf(outer)
    const place = topLevelMembers(bytes).findLast(({ name }) => name === member)
    if (place === undefined || !isObject(outer[member])) throw refused(`"${member}" must be an object.`)
    const body = bytes.subarray(place.valueStart, place.end)
    const request = kind.kind.parse({ bytes: body, headers: {}, query: '' })
    this.#checkRequest(request, body)
    const bounded = this.#priced(request, kind)
    totals.lines++
    return this.#written(customId, kind, bounded, body)
  }

  #customId(id: unknown): string {
    if (typeof id !== 'string' || id.length > customIdMaxChars || !this.#shape.idShape.test(id))
      throw refused(`"custom_id" must be a text of 1 to ${customIdMaxChars} characters that the format allows.`)
    if (!this.#ids.add(id)) throw refused('Another request of this batch has the same custom_id.')
    return id
  }

  #endpointOf(outer: Record<string, unknown>): BatchKind {
    if (this.#shape.member === 'params') return this.kind
    if (outer['method'] !== 'POST') throw refused('"method" must be POST.')
    const { url } = outer
    if (typeof url !== 'string') throw refused('"url" must be the path of an endpoint.')
    const kind = this.#kindOf(url)
    this.#kind ??= kind
    if (kind !== this.#kind) throw refused(`All lines of a batch have one endpoint, and the lines before have ${this.#kind.endpoint}.`)
    return kind
  }

  #checkRequest(request: ParsedRequest, body: Buffer): void {
    const { native } = request
    if (request.stream) throw refused('A request of a batch is not streamed. Leave "stream" out.')
    if (request.maxTokens === 0 && native.format === 'anthropic') throw refused('"max_tokens" must be at least 1 in a batch.')
    // The names are searched in the request as it was sent, because parsing has removed them.
    const sent = new Set(topLevelMembers(body).map(({ name }) => name))
    const own = routerOnlyNames.find(name => sent.has(name))
    if (own !== undefined) throw refused(`"${own}" chooses a route, and a batch has one route for all of its requests. Leave it out.`)
    if (this.#attempt === null) this.#choose(request)
    else if (request.modelId !== this.#modelId) throw refused('All requests of a batch have one model, and the requests before have another one.')
  }

  /** Chooses the route by the first request: the first one of a plan whose provider takes batches in this format. */
  #choose(request: ParsedRequest): void {
    const { principal, agent, org } = this.#caller
    const kind = this.kind
    checkWindow(org.retentionDays)
    const plan = this.#deps.resolve({
      modelId: request.modelId,
      kind: kind.kind.modelKind,
      fields: request.fields,
      org,
      policies: agent.policies,
      promptTokens: routedTokensOf(request),
      needs: request.needs,
      accepts: model => request.accepts?.(model),
    })
    const found = plan.attempts.find(attempt => isFit(attempt, kind, principal.isTrial === true))
    if (found === undefined)
      throw fail('unsupported_operation', {
        message: `No route of "${plan.model.id}" that this credential may use takes batches at ${kind.endpoint}. No provider was called.`,
      })
    const price: RoutePrice = batchPriceOf(found.route.price)
    const attempt = { ...found, route: { ...found.route, price } }
    this.#modelId = request.modelId
    this.#attempt = attempt
    this.#plan = { model: attempt.model, attempts: [attempt], headers: {} }
  }

  /** Returns the request within the caps of one call, and adds what it may cost. */
  #priced(request: ParsedRequest, { kind }: BatchKind): ParsedRequest {
    const { attempt, totals } = this
    request.checkFor?.(attempt)
    const { policies } = this.#caller.agent
    const bounded = policies.length === 0 || this.#plan === null ? request : withinCallCaps(kind, request, this.#plan, policies)
    const { price } = attempt.route
    const outputTokens = kind.hasOutput ? outputCeiling(bounded, attempt) : 0
    const uinr = priceHeld(price, heldUsage(plainUsage(bounded.promptTokens, outputTokens), bounded, price))
    totals.holdUinr += uinr
    if (uinr > totals.lineUinr) totals.lineUinr = uinr
    if (outputTokens > totals.lineOutputTokens) totals.lineOutputTokens = outputTokens
    return bounded
  }

  /** Writes the body as a call of the same API would be sent, so that fields that cost extra are withheld on the platform's key. */
  #written(customId: string, kind: BatchKind, request: ParsedRequest, sent: Buffer): Buffer {
    const upstream = this.#upstream(request)
    const exact = exactNumbersOf(sent)
    const body = exact === undefined ? upstream.body : exact.restored(upstream.body, exact.room())
    const id = JSON.stringify(customId)
    const before =
      this.#shape.member === 'params' ? `{"custom_id":${id},"params":` : `{"custom_id":${id},"method":"POST","url":${JSON.stringify(kind.endpoint)},"body":`
    return Buffer.concat([Buffer.from(before), oneLine(body), Buffer.from('}')])
  }

  #upstream(request: ParsedRequest): UpstreamRequest {
    const { attempt } = this
    const { route, credential, model } = attempt
    refuseUnpricedSound(request, attempt)
    refuseUnpricedFiles(request, attempt)
    const target = { provider: route.provider, upstreamModel: route.upstreamModel, credential, forwarded: null, traits: model }
    const dialect = this.#deps.dialectOf(route.dialect)
    if (dialect.relay !== null && request.native.format === route.dialect) return dialect.relay(withoutNativeWithheld(request.native, attempt).native, target)
    return dialect.request(withoutWithheld(request.hub, attempt), target)
  }
}

/** Throws `model_gated` without a data-retention window, because a batch and its files stay at the provider for days. */
export function checkWindow(retentionDays: number): void {
  if (retentionDays === 0)
    throw fail('model_gated', {
      message: 'A batch stays at its provider for days, and this organisation has no data-retention window. An owner can set one (PUT /me/org/data-retention).',
    })
}

function isFit({ route, forwarded, byok, identity }: Attempt, { dialect }: BatchKind, isTrial: boolean): boolean {
  // Later requests about the batch go to the operator's address with a key, so the first one must too.
  if (identity !== undefined || route.provider.isOrgPlace === true || route.provider.userGiven === true) return false
  if (route.provider.batches !== true || route.dialect !== dialect || forwarded === true) return false
  // Free calls of a trial are counted one by one.
  return byok || !isTrial
}

const [lineFeed, carriageReturn, space] = [10, 13, 32] as const

/** Line breaks between the members of a body would end its line. JSON has none inside of texts. */
function oneLine(body: Buffer | string): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  if (!bytes.includes(lineFeed) && !bytes.includes(carriageReturn)) return bytes
  const line = Buffer.from(bytes)
  for (const end of [lineFeed, carriageReturn]) for (let at = line.indexOf(end); at !== -1; at = line.indexOf(end, at)) line[at] = space
  return line
}

const refused = (message: string): GatewayError => fail('bad_request', { message })
