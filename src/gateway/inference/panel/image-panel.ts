/**
 * The image panel. Several models draw concurrently, and a vision model picks one picture. Each of these steps is a call of its own in the usage
 * rows. Decision 0167 gives the reasons.
 */
import { type Call, Reply, reply } from '../../../platform/endpoint.ts'
import { fail, GatewayError } from '../../../platform/errors.ts'
import type { CallPolicy, Principal } from '../../../platform/security/principal.ts'
import { inrFromUinr, inrTextOf } from '../../../platform/values/money.ts'
import { panelMembers, panelSize } from '../../catalog/image-panel.ts'
import { isSandbox } from '../../catalog/loading/sandbox.ts'
import type { Permit } from '../../limits/engine/admission.ts'
import type { MadeImage } from '../../providers/image-style.ts'
import type { Plan } from '../../routing/plan.ts'
import type { UsageEvent } from '../../usage/events/record.ts'
import { noteRun } from '../../usage/runs/entry/run-headers.ts'
import { operatorBounds } from '../../wire/json/json-bounds.ts'
import { brHeader } from '../../wire/response-headers.ts'
import { noUsage } from '../../wire/usage.ts'
import type { ChargeTotal } from '../charge/charge-total.ts'
import { priceTokens } from '../charge/price.ts'
import type { ContentCall } from '../content-log/content-capture.ts'
import type { InferenceDeps } from '../deps.ts'
import { imagesKind } from '../kinds/media/images.ts'
import type { ImagesRequest } from '../kinds/media/images-request.ts'
import { jsonInTurns, objectInTurns } from '../media/json-reply.ts'
import { bearer, chargedAgent, runIdOf, serve } from '../pipeline.ts'
import { PanelCalls } from './panel-calls.ts'
import { endsAll, judge, type Verdict } from './panel-judge.ts'

/** The result of one member of the panel. */
interface Member {
  readonly model: string
  readonly provider: string | null
  readonly image: MadeImage | null
  /** The parameters that the member's provider could not take, as its reply names them. */
  readonly dropped: string | null
  /** The time in the member's reply. Null for a member without a picture. */
  readonly created: number | null
  readonly error: unknown
}

/** A request for the panel, with the number of bytes of its body. */
interface SentRequest {
  readonly asked: ImagesRequest
  readonly bytes: number
}

type Drawn = Member & { readonly image: MadeImage; readonly index: number }

/**
 * Serves a call of the panel. All reasons to refuse the call are checked before a dial. Then the members draw concurrently, and then one picture
 * is picked. When the judging fails, the first picture is returned. Throws the errors of routing, `bad_request`, `call_cap_exceeded`, the
 * refusal that all members got, or `all_routes_failed`. `chargeTotal` collects the charges.
 */
export async function servePanel(sent: SentRequest, call: Call<Principal>, given: InferenceDeps, chargeTotal: ChargeTotal): Promise<Reply> {
  const startedAtMs = given.clock.monotonicMs()
  const { request, drawing, content, runId } = await checkPanel(sent, call, given)
  let permit: Permit<UsageEvent> | null = null
  // The first call that is admitted has taken the unit of the run, so its permit knows what the caps leave.
  let counted: Permit<UsageEvent> | null = null
  const deps = withinPanel(request.modelId, chargeTotal, given, admitted => {
    permit = admitted
    counted ??= admitted
  })
  try {
    const members = await Promise.all(drawing.map(model => drawWith(model, request, call, deps)))
    call.signal.throwIfAborted()
    const revoked = members.find(({ error }) => endsAll(error))
    if (revoked !== undefined) throw revoked.error
    const drawn = members.flatMap((member, index): Drawn[] => (member.image === null ? [] : [{ ...member, image: member.image, index }]))
    const [first] = drawn
    if (first === undefined) throw noneDrawn(members)
    const verdict =
      drawn.length === 1
        ? onlyOne
        : await judge(
            request.params.prompt,
            drawn.map(({ image }) => image),
            request.fields,
            call,
            deps,
          )
    const chosen = (verdict.kind === 'picked' ? drawn[verdict.index] : first) ?? first
    const latencyMs = given.clock.monotonicMs() - startedAtMs
    const context = { orgId: bearer(call.principal).orgId, deps: given }
    const drawnReply = await replyOf(members, chosen, verdict, chargeTotal, latencyMs, permit, context)
    const made = runId === null ? drawnReply : new Reply(drawnReply.status, headersInRun(drawnReply.headers, runId, counted), drawnReply.body)
    return content === null ? made : given.contentLog.keep(content, made)
  } catch (error) {
    if (content !== null) given.contentLog.keepFailure(content, error)
    throw error
  }
}

/** Returns the headers of a reply with those of its run. */
function headersInRun(of: Readonly<Record<string, string>>, runId: string, permit: Permit<UsageEvent> | null): Record<string, string> {
  const headers = { ...of }
  noteRun(headers, runId, permit ?? { runSpentUinr: null, runRemainingUinr: null, runCallsRemaining: null })
  return headers
}

const onlyOne: Verdict = { kind: 'none', why: 'only one image was made', model: null }

/** The checked panel call: the request for its members, and the content call when the organisation keeps content. */
interface Checked {
  readonly request: ImagesRequest
  /** The model of each picture. */
  readonly drawing: readonly string[]
  readonly content: ContentCall | null
  readonly runId: string | null
}

/** Asks routing for the panel itself. That checks the model, the policies of the credential, residency, `exclude` and credentials. */
async function checkPanel({ asked: request, bytes }: SentRequest, call: Call<Principal>, deps: InferenceDeps): Promise<Checked> {
  const { fields, modelId, native } = request
  if (fields.fallbacks !== null) throw fail('bad_request', { message: '"fallbacks" is not for the image panel, which has its own models.' })
  const principal = bearer(call.principal)
  const runId = runIdOf(principal, call.runId, null)
  const { policies } = await chargedAgent(principal, call.agentLabel, deps, runId)
  const org = await deps.orgRouting(principal.orgId)
  // A chain saved for the panel is ignored. It would draw one picture with its steps, but the panel draws with its members.
  const plan = deps.resolve({ modelId, kind: 'image', fields, org: { ...org, chains: new Map() }, policies, promptTokens: 0 })
  const drawing = drawingOf(plan)
  checkCaps(plan, drawing, request, policies)
  const content = {
    orgId: principal.orgId,
    requestId: call.requestId,
    keyId: principal.keyId,
    model: modelId,
    native,
    requestBytes: bytes,
  }
  return { request: keyToOne(request, plan), drawing, content: org.retentionDays === 0 ? null : content, runId }
}

/** Returns the models that draw. A caller who reaches only the sandbox gets the sandbox's model once for each member. */
function drawingOf({ attempts: [first] }: Plan): readonly string[] {
  return first !== undefined && isSandbox(first.route.provider) ? Array.from({ length: panelSize }, () => first.route.modelId) : panelMembers
}

/** A key that came with the request is used at one provider only, whichever member draws. */
function keyToOne(request: ImagesRequest, { attempts: [first] }: Plan): ImagesRequest {
  return request.fields.upstreamKey === null || first === undefined ? request : request.pinnedTo(first.route.provider.id)
}

/** Checks the cap of one call against the sum of all pictures. Throws `call_cap_exceeded`. */
function checkCaps(plan: Plan, drawing: readonly string[], { media }: ImagesRequest, policies: readonly CallPolicy[]): void {
  const one = { ...noUsage, media: { ...media, images: 1 } }
  const dearest = new Map<string, bigint>()
  for (const { route } of plan.attempts) {
    const uinr = priceTokens(route.price, one)
    if (uinr > (dearest.get(route.modelId) ?? 0n)) dearest.set(route.modelId, uinr)
  }
  const worstUinr = drawing.reduce((sum, model) => sum + (dearest.get(model) ?? 0n), 0n)
  for (const { owner, maxCostUinr } of policies) {
    if (maxCostUinr === null || worstUinr <= maxCostUinr) continue
    throw fail('call_cap_exceeded', {
      message: `One call of this ${owner} may cost at most ₹${inrFromUinr(maxCostUinr)} (max_cost_inr_per_call); the images of the panel could cost ₹${inrFromUinr(worstUinr)}. Ask one model instead. No provider was called.`,
      extra: { scope: owner, max_cost_inr_per_call: inrFromUinr(maxCostUinr) },
    })
  }
}

/**
 * Returns the dependencies for the calls of a panel. The content log gets the outer call alone. A policy that allows the panel also allows its
 * members and its judge. Rules about providers stay in force.
 */
function withinPanel(panelId: string, chargeTotal: ChargeTotal, deps: InferenceDeps, onAdmitted: (permit: Permit<UsageEvent>) => void): InferenceDeps {
  const calls = new PanelCalls(deps.limits)
  const widened = (policy: CallPolicy): CallPolicy => (policy.allowedModels?.includes(panelId) ? { ...policy, allowedModels: null } : policy)
  return {
    ...deps,
    panelPart: calls,
    watch: chargeTotal.watching(deps.watch),
    contentLog: { keep: (_call, made) => made, keepFailure: () => {} },
    limits: {
      takeRate: principal => deps.limits.takeRate(principal),
      async admit(request) {
        const permit = await calls.admit(request)
        onAdmitted(permit)
        return permit
      },
    },
    resolve: request => deps.resolve({ ...request, policies: request.policies.map(widened) }),
  }
}

/** Draws one picture with one member. A failure is a part of the panel's answer. */
async function drawWith(model: string, request: ImagesRequest, call: Call<Principal>, deps: InferenceDeps): Promise<Member> {
  const own = request.forMember(model)
  try {
    const { status, headers, body } = await serve(imagesKind(own), { bytes: Buffer.alloc(0), headers: {}, query: '' }, call, deps)
    const provider = headers[brHeader.provider] ?? null
    if (status !== 200 || body.kind !== 'bytes') return { ...notDrawn(model, provider), error: null }
    const { buffer, byteOffset, byteLength } = body.bytes
    const value = await objectInTurns(Buffer.from(buffer, byteOffset, byteLength), operatorBounds, { orgId: bearer(call.principal).orgId, deps })
    if (value === null) return { ...notDrawn(model, provider), error: null }
    const { created, data } = value as unknown as { created: number; data: readonly MadeImage[] }
    return { model, provider, image: data[0] ?? null, dropped: headers[brHeader.droppedParams] ?? null, created, error: null }
  } catch (error) {
    const provider = error instanceof GatewayError ? (error.options.headers?.[brHeader.provider] ?? null) : null
    return { ...notDrawn(model, provider), error }
  }
}

const notDrawn = (model: string, provider: string | null) => ({ model, provider, image: null, dropped: null, created: null })

/**
 * Returns the error of a panel without a picture. When all members got a refusal before a provider was asked (budget, limit, revoked), that
 * refusal is the error. Otherwise it is `all_routes_failed`.
 */
function noneDrawn(members: readonly Member[]): GatewayError {
  const errors = members.map(({ error }) => error)
  const walls = errors.filter((error): error is GatewayError => error instanceof GatewayError && !routeErrors.includes(error.errorName))
  const others = errors.filter(error => !(error instanceof GatewayError && (walls.includes(error) || unreachable.includes(error.errorName))))
  const [wall] = walls
  if (wall !== undefined && others.length === 0) return wall
  const said = members.map(
    ({ model, error }) => `${model}: ${error instanceof GatewayError ? error.code : error === null ? 'refused by its provider' : 'failed'}`,
  )
  return fail('all_routes_failed', { message: `No model of the panel made an image (${said.join('; ')}).` })
}

const unreachable: readonly string[] = ['no_route', 'no_route_residency', 'model_not_allowed', 'byok_required']
const routeErrors: readonly string[] = [...unreachable, 'all_routes_failed', 'reply_too_large', 'provider_unavailable_billing', 'internal_error']

async function replyOf(
  members: readonly Member[],
  chosen: Drawn,
  verdict: Verdict,
  chargeTotal: ChargeTotal,
  latencyMs: number,
  permit: Permit<UsageEvent> | null,
  context: { readonly orgId: number; readonly deps: InferenceDeps },
): Promise<Reply> {
  // The permit of the panel's last call knows the agent's remaining budget after all of its calls.
  const left = permit?.agentRemainingUinr ?? null
  const sangam = {
    kind: 'image',
    panel: members.map(({ model, provider, image }) => ({ model, provider, ok: image !== null })),
    chosen: { model: chosen.model, provider: chosen.provider, index: chosen.index },
    judge_model: verdict.model,
    judged: verdict.kind === 'picked',
    reason: verdict.kind === 'picked' ? 'picked by the judge' : verdict.why,
  }
  const headers = {
    ...(chosen.provider === null ? {} : { [brHeader.provider]: chosen.provider }),
    ...(chosen.dropped === null ? {} : { [brHeader.droppedParams]: chosen.dropped }),
    [brHeader.sangam]: JSON.stringify(sangam).replace(/[^\x20-\x7e]/g, '?'),
    [brHeader.costInr]: inrTextOf(chargeTotal.costUinr),
    [brHeader.latencyMs]: String(Math.round(latencyMs)),
    ...(left === null ? {} : { [brHeader.budgetRemainingInr]: inrTextOf(left) }),
  }
  const value = { created: chosen.created, data: [chosen.image], br_sangam: sangam }
  const json = await jsonInTurns(value, lengthOf(chosen.image), context)
  return reply.bytes(json, { ...headers, 'content-type': 'application/json; charset=utf-8' })
}

/** Returns about the number of characters of a picture with its texts. */
const lengthOf = (image: MadeImage): number => Object.values(image).reduce<number>((sum, each) => sum + (typeof each === 'string' ? each.length : 0), 0)
