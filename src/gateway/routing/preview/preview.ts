import type { CallPolicy, Principal } from '../../../platform/security/principal.ts'
import { brHeader } from '../../wire/response-headers.ts'
import type { OrgRouting } from '../org-routing.ts'
import { resolveAsPaid } from '../payer.ts'
import type { Attempt, ResolveRequest } from '../plan.ts'
import { resolve } from '../resolve.ts'
import type { RoutingWorld } from '../routing-world.ts'
import { type Explained, explain, reasonOf } from './explain.ts'

/** Where a call would go, and why. Decision 0133 gives the reasons for the preview. */
export interface PreviewView {
  /** The model of the first attempt. */
  readonly model: string
  readonly provider: string
  /** The preset that chose the model. */
  readonly preset?: string
  /** The capability that the prompt needs, if it decided the choice. */
  readonly capability?: string
  readonly reason: string
  readonly candidates: readonly Explained[]
}

export interface RoutePreviewDeps {
  /** Returns the routing request that a call with this body would make, and a function that checks the first attempt. Throws the errors of the call. */
  requestOf(body: Record<string, unknown>): { readonly request: Omit<ResolveRequest, 'org' | 'policies'>; checkFor(first: Attempt): void }
  /** Returns the state of routing for calls of this organisation. */
  world(orgId: number): RoutingWorld
  orgRouting(orgId: number): OrgRouting | Promise<OrgRouting>
  /** Returns the policies for a call of this caller in the name of the agent. Throws `agent_revoked_label`. */
  policiesOf(caller: Principal, agentLabel: string | null): readonly CallPolicy[] | Promise<readonly CallPolicy[]>
}

/** Resolves a request like a real call, but contacts no provider and counts nothing. It does not check budgets, balances or the cap of one call. */
export class RoutePreview {
  readonly #deps: RoutePreviewDeps
  constructor(deps: RoutePreviewDeps) {
    this.#deps = deps
  }

  /**
   * Returns the preview. Throws the errors that a real call with this body would throw before its first dial: `bad_request`, `bad_steps` and all
   * errors of `resolve`.
   */
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

/** Now and then, a real call tries an unmeasured route first. A preview must not use up that turn. */
function withoutProbes(world: RoutingWorld): RoutingWorld {
  const { health } = world
  return {
    ...world,
    health: { measurements: key => health.measurements(key), inMaintenance: key => health.inMaintenance(key), probeIsDue: () => false },
  }
}
