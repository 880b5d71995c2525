import type { CatalogSnapshot, Model, Route } from '../../../src/gateway/catalog/model.ts'
import { noRankings, type Rankings } from '../../../src/gateway/catalog/rankings.ts'
import type { Provider } from '../../../src/gateway/providers/provider.ts'
import { Circuits } from '../../../src/gateway/routing/circuits/circuit.ts'
import { type DialResult, RouteHealth } from '../../../src/gateway/routing/circuits/route-health.ts'
import type { OrgRouting } from '../../../src/gateway/routing/org-routing.ts'
import type { ResolveRequest } from '../../../src/gateway/routing/plan.ts'
import type { RoutingWorld } from '../../../src/gateway/routing/routing-world.ts'
import type { RouterFields } from '../../../src/gateway/wire/chat/router-fields.ts'
import type { Clock } from '../../../src/platform/clock.ts'
import { Secret } from '../../../src/platform/security/secret.ts'

/** A clock that moves only in `step`. */
export function steppedClock(startMs = 1_700_000_000_000): Clock & { step(ms: number): void } {
  let nowMs = startMs
  const never = (): never => {
    throw new Error('routing sets no timers')
  }
  const step = (ms: number): void => {
    nowMs += ms
  }
  return { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: never, every: never, after: never, step }
}

export function provider(id: string, over: Partial<Provider> = {}): Provider {
  return {
    id,
    name: id,
    dialect: 'openai',
    baseUrl: `http://${id}.test/v1`,
    auth: 'bearer',
    residency: 'global',
    byok: true,
    keyShape: null,
    quirks: [],
    platformKey: new Secret(`key of ${id}`),
    configured: true,
    ...over,
  }
}

/** A provider for which the platform has no key. */
export const unconfigured = (id: string, over: Partial<Provider> = {}): Provider => provider(id, { platformKey: null, configured: false, ...over })

export interface RouteSketch {
  readonly of: Provider
  /** Price in ₹ per million tokens, with input and output together. */
  readonly inr?: number
  readonly byokOnly?: boolean
  readonly rank?: number
}

export function model(id: string, sketches: readonly RouteSketch[], over: Partial<Model> = {}): Model {
  const routes = sketches.map(
    (sketch): Route => ({
      modelId: id,
      provider: sketch.of,
      upstreamModel: id,
      dialect: sketch.of.dialect,
      residency: sketch.of.residency,
      price: {
        inputUinrPerMtok: BigInt(Math.round((sketch.inr ?? 10) * 500_000)),
        outputUinrPerMtok: BigInt(Math.round((sketch.inr ?? 10) * 500_000)),
        cachedInputUinrPerMtok: null,
        cacheWriteUinrPerMtok: null,
        uinrPerImage: 0n,
        source: 'test',
        asOf: '',
      },
      byokOnly: sketch.byokOnly ?? false,
      contextLength: null,
      rank: sketch.rank ?? null,
    }),
  )
  return {
    id,
    kind: 'chat',
    ownedBy: 'test',
    languages: ['en'],
    contextLength: 8000,
    maxOutputTokens: null,
    tools: true,
    modalities: ['text'],
    supportedParameters: [],
    reasoning: false,
    openness: null,
    inrPerImage: null,
    dimensions: null,
    efforts: [],
    alwaysThinks: false,
    imageMaxEdge: null,
    edits: false,
    gated: false,
    routes,
    ...over,
  }
}

export function catalog(models: readonly Model[], others: readonly Provider[] = [], rankings: Partial<Rankings> = {}): CatalogSnapshot {
  const providers = [...models.flatMap(entry => entry.routes.map(route => route.provider)), ...others]
  return {
    models: new Map(models.map(entry => [entry.id, entry])),
    providers: new Map(providers.map(entry => [entry.id, entry])),
    rankings: { ...noRankings, ...rankings },
  }
}

/** A routing world whose circuits and averages a test can change. */
export interface TestWorld extends RoutingWorld {
  readonly circuits: Circuits
  readonly health: RoutingWorld['health'] & Pick<RouteHealth, 'withhold'> & { record(sample: Omit<DialResult, 'orgId'>): void }
  readonly clock: ReturnType<typeof steppedClock>
}

export function worldOf(models: readonly Model[], over: Partial<Pick<RoutingWorld, 'catalog'>> = {}): TestWorld {
  const clock = steppedClock()
  const circuits = new Circuits({ clock, rule: { failuresToOpen: 5, openMs: 30_000 } })
  const routes = new RouteHealth(clock)
  const orgId = 1
  const health: TestWorld['health'] = {
    ...routes.of(orgId),
    withhold: (routeId, untilMs) => routes.withhold(routeId, untilMs),
    record: sample => routes.record({ ...sample, orgId }),
  }
  return { catalog: catalog(models), circuits, health, ...over, clock }
}

export const noFields: RouterFields = {
  optimize: 'price',
  weights: null,
  best: false,
  provider: null,
  indiaOnly: false,
  exclude: [],
  upstreamKey: null,
  fallbacks: null,
  imageOptimize: null,
  imageMaxEdge: null,
}

/** An organisation that has only the given settings. */
export function orgRouting(over: Partial<OrgRouting> = {}): OrgRouting {
  return { orgId: 1, retentionDays: 0, savedKeys: new Map(), customRoutes: new Map(), chains: new Map(), ...over }
}

/** An organisation with a saved key at each of these providers. */
export function orgWithKeys(...providerIds: readonly string[]): OrgRouting {
  return orgRouting({ savedKeys: new Map(providerIds.map(id => [id, { key: new Secret('saved'), alwaysUse: false, models: [] }])) })
}

export function asking(modelId: string, fields: Partial<RouterFields> = {}, over: Partial<ResolveRequest> = {}): ResolveRequest {
  return { modelId, kind: 'chat', fields: { ...noFields, ...fields }, org: orgRouting(), policies: [], promptTokens: 100, ...over }
}

/** Opens the circuit of a route. */
export function trip(world: TestWorld, routeId: string): void {
  for (let count = 0; count < 5; count++) world.circuits.failure(routeId)
}
