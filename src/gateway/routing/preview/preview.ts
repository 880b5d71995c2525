import type { CallPolicy, Principal } from '../../../platform/security/principal.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { OrgRouting } from '../org-routing.ts'
import { resolveAsPaid } from '../payer.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import { resolve } from '../resolve.ts'
import type { RoutingWorld } from '../routing-world.ts'
import { type Explained, explain, reasonOf } from './explain.ts'

/** Where a call would go, and why. Decision 0133 says why. */
export interface PreviewView {
  /** The model that would be dialed first. */
  readonly model: string
  readonly provider: string
  /** The preset that chose the model. */
  readonly preset?: string
  /** What the prompt asks for, where that chose the model. */
  readonly capability?: string
  readonly reason: string
  readonly candidates: readonly Explained[]
}

export interface RoutePreviewDeps {
  /** What the call of such a body asks of routing, and its own look at the first attempt. Throws what the call throws. */
  requestOf(body: Record<string, unknown>): { readonly request: Omit<ResolveRequest, 'org' | 'policies'>; checkFor(first: Attempt): void }
  /** As it is for calls of this organisation. */
  world(orgId: number): RoutingWorld
  orgRouting(orgId: number): OrgRouting | Promise<OrgRouting>
  /** What binds a call of this caller in the name of that agent. Throws `agent_revoked_label`. */
  policiesOf(caller: Principal, agentLabel: string | null): readonly CallPolicy[] | Promise<readonly CallPolicy[]>
}

/** Resolves a request as the real call would, and dials, holds and counts nothing. What budgets, balances and caps per call say is not asked. */
export class RoutePreview {
  readonly #deps: RoutePreviewDeps
  constructor(deps: RoutePreviewDeps) {
    this.#deps = deps
  }

  /** Throws what the real call would throw for the same body before its dial: `bad_request`, `bad_steps` and all of `resolve`. */
  async preview(body: Record<string, unknown>, caller: Principal, agentLabel: string | null): Promise<PreviewView> {
    const world = withoutProbes(this.#deps.world(caller.orgId))
    const [org, policies] = await Promise.all([this.#deps.orgRouting(caller.orgId), this.#deps.policiesOf(caller, agentLabel)])
    const read = this.#deps.requestOf(body)
    const request = { ...read.request, org, policies }
    const isTrial = caller.kind !== 'session' && caller.isTrial === true
    const plan = resolveAsPaid(isTrial, request, asked => resolve(asked, world))
    const [first] = plan.attempts
    if (!first) throw new Error('a plan has attempts')
    read.checkFor(first)
    const preset = plan.headers[brHeader.autoPreset]
    const capability = plan.headers[brHeader.routeCapability]
    return {
      model: first.model.id,
      provider: first.route.provider.id,
      ...(preset === undefined ? {} : { preset }),
      ...(capability === undefined ? {} : { capability }),
      reason: reasonOf(plan, request),
      candidates: explain(plan, request, world),
    }
  }
}

/** Now and then a real call tries an unmeasured route first; asking where a call would go does not use that turn up. */
function withoutProbes(world: RoutingWorld): RoutingWorld {
  const { health } = world
  return {
    ...world,
    health: { measurements: key => health.measurements(key), inMaintenance: key => health.inMaintenance(key), probeIsDue: () => false },
  }
}
