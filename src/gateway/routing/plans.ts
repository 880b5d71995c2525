/**
 * Keeps the plans of plain requests: a model of the catalog by its name, without router fields and without rules of the credential. Such a plan depends on the
 * catalog, on the settings of the organisation, and on whether a route of the model is open or withheld. Decision 0543 says why.
 */
import type { Clock } from '../../platform/clock.ts'
import { type CatalogSnapshot, type RouteId, stateKeyOf } from '../catalog/model.ts'
import { defaultFields } from '../wire/chat/router-fields.ts'
import type { RouteCircuits } from './circuits/route-circuits.ts'
import type { RouteHealth } from './circuits/route-health.ts'
import type { OrgRouting } from './org-routing.ts'
import type { Plan, ResolveRequest } from './plan.ts'
import { resolve } from './resolve.ts'
import { presetFor } from './selection/choice.ts'
import { priceOf } from './selection/rank.ts'

/** The most plans that are kept for one organisation. */
const plansMax = 256

export interface PlansDeps {
  readonly catalog: () => CatalogSnapshot
  readonly circuits: Pick<RouteCircuits, 'of' | 'isOpen'>
  readonly health: Pick<RouteHealth, 'of' | 'inMaintenance'>
  readonly clock: Clock
}

interface Known {
  readonly catalog: CatalogSnapshot
  readonly kind: ResolveRequest['kind']
  readonly plan: Plan
  /** The state keys of all routes of the model, also of those that the plan does not use. */
  readonly stateKeys: readonly RouteId[]
  /** True when routes cost the same, so that the conversation decides their order. */
  readonly hasTies: boolean
}

/** Returns plans. The plans of an organisation are kept as long as its settings are cached. */
export class Plans {
  readonly #deps: PlansDeps
  readonly #byOrg = new WeakMap<OrgRouting, Map<string, Known>>()

  constructor(deps: PlansDeps) {
    this.#deps = deps
  }

  /** Returns what `resolve` returns. Throws all errors of `resolve`. */
  resolve(request: ResolveRequest): Plan {
    const isKept = isPlain(request)
    const known = isKept ? this.#byOrg.get(request.org)?.get(request.modelId) : undefined
    if (known !== undefined && this.#isUsable(known, request)) {
      request.accepts?.(known.plan.model)
      return known.plan
    }
    const { circuits, health, clock } = this.#deps
    const { orgId } = request.org
    const catalog = this.#deps.catalog()
    const plan = resolve(request, { catalog, circuits: circuits.of(orgId), health: health.of(orgId), clock })
    if (isKept) this.#keep(request, plan, catalog)
    return plan
  }

  #isUsable({ kind, catalog, stateKeys, hasTies }: Known, request: ResolveRequest): boolean {
    if (kind !== request.kind || catalog !== this.#deps.catalog() || (hasTies && request.tieKey !== undefined)) return false
    return this.#areUsual(stateKeys, request.org.orgId)
  }

  #keep({ modelId, kind, org, tieKey }: ResolveRequest, plan: Plan, catalog: CatalogSnapshot): void {
    // The steps of a chain may be presets, whose choice changes with the measurements.
    if (catalog.models.get(modelId) !== plan.model || org.chains.has(plan.model.id)) return
    const stateKeys = plan.model.routes.map(stateKeyOf)
    const ties = hasTies(plan)
    if (!this.#areUsual(stateKeys, org.orgId) || (ties && tieKey !== undefined)) return
    let plans = this.#byOrg.get(org)
    if (plans === undefined || plans.size >= plansMax) {
      plans = new Map()
      this.#byOrg.set(org, plans)
    }
    plans.set(modelId, { catalog, kind, plan, stateKeys, hasTies: ties })
  }

  /** Returns whether no route is withheld and no circuit is open, so that prices alone decide the order. */
  #areUsual(stateKeys: readonly RouteId[], orgId: number): boolean {
    const { circuits, health, clock } = this.#deps
    for (let index = 0; index < stateKeys.length; index++) {
      const key = stateKeys[index] as RouteId
      if (health.inMaintenance(key) || circuits.isOpen(key, orgId, clock.nowMs())) return false
    }
    return true
  }
}

/** Returns whether two routes of a plan have one price. */
function hasTies({ attempts }: Plan): boolean {
  const prices = new Set(attempts.map(({ route }) => priceOf(route)))
  return prices.size < new Set(attempts.map(({ route }) => route)).size
}

/** Returns whether the request has no field, rule or credential that changes its plan. */
const isPlain = (request: ResolveRequest): boolean =>
  request.fields === defaultFields &&
  request.policies.length === 0 &&
  request.forwards !== true &&
  request.platform === undefined &&
  presetFor(request) === undefined
