import { assertNever } from '../../../platform/values/assert.ts'
import { comparablePrice, type Route } from '../../catalog/model.ts'
import type { OptimizeMode, RouterFields } from '../../wire/chat/router-fields.ts'
import type { Measurements } from '../circuits/route-health.ts'
import { tieOrder } from '../sticky/tie-order.ts'

/** The measurements of one route that ranking uses. */
export interface RouteFacts extends Measurements {
  readonly open: boolean
}

/** How routes are ordered. `window` puts the largest context window first. Only presets use `window`, and callers cannot ask for it. */
export type RankMode = OptimizeMode | 'window'

export interface Preference {
  readonly optimize: RankMode
  /** Weights of the request. They take precedence over `optimize`. Null when the request contains none. */
  readonly weights: RouterFields['weights']
  /** True when unmeasured routes come first in this ranking, so that they are measured. */
  readonly probe: boolean
  /** The conversation that orders routes with equal scores. When it is left out, they keep the order of the catalog. */
  readonly tieKey?: string | undefined
}

/** Failure rates that separate three classes of reliability in `auto`: up to 5 %, up to 20 %, and above 20 %. Our choice. */
const reliabilityClasses = [0.05, 0.2]
/** In a weighted sum, latencies that differ by less than this many milliseconds count as nearly equal. Our choice. */
const latencySlackMs = 50
/** The value of an unmeasured axis in a weighted sum. It is the middle of the range. */
const unmeasured = 0.5

interface Known {
  readonly route: Route
  readonly facts: RouteFacts
  readonly priceUinr: number
}

/** A higher score is worse. Scores are compared element by element. */
type Score = readonly number[]

/**
 * Returns the same routes in the order in which the gateway tries them. Open circuits come last in every mode. Routes with equal scores keep the
 * order of the catalog, or get the order of their conversation. The function is pure.
 */
export function rank(routes: readonly Route[], factsOf: (route: Route) => RouteFacts, preference: Preference): readonly Route[] {
  const known = routes.map(route => ({ route, facts: factsOf(route), priceUinr: priceOf(route) }))
  const score = scorer(known, preference)
  const scored = known.map(entry => ({ route: entry.route, score: [entry.facts.open ? 1 : 0, ...score(entry)] }))
  const tie = preference.tieKey === undefined ? null : tieOrder(preference.tieKey)
  return scored.sort((a, b) => compare(a.score, b.score) || (tie?.(a.route, b.route) ?? 0)).map(entry => entry.route)
}

/** Returns input price plus output price, in micro-rupees per million tokens of each. */
export const priceOf = (route: Route): number => Number(comparablePrice(route.price))

function compare(a: Score, b: Score): number {
  for (const [index, value] of a.entries()) {
    const other = b[index] ?? 0
    if (value !== other) return value < other ? -1 : 1
  }
  return 0
}

function scorer(all: readonly Known[], { optimize, weights, probe }: Preference): (entry: Known) => Score {
  if (weights !== null) return blended(all, weights)
  const latency = ({ facts }: Known): number => facts.latencyMs ?? (probe ? -1 : Number.POSITIVE_INFINITY)
  switch (optimize) {
    case 'price':
      return entry => [entry.priceUinr]
    case 'latency':
      return entry => [latency(entry)]
    case 'uptime':
      return entry => [entry.facts.failureRate ?? 0, latency(entry)]
    case 'throughput': {
      const slow = scaled(all, entry => entry.facts.latencyMs, latencySlackMs)
      return entry => [slow(entry) + 1 - (entry.facts.headroom ?? unmeasured)]
    }
    case 'quality':
      return entry => [entry.route.rank ?? Number.POSITIVE_INFINITY, latency(entry)]
    case 'window':
      return entry => [-(entry.route.contextLength ?? 0), entry.priceUinr]
    case 'auto': {
      const slow = scaled(all, entry => entry.facts.latencyMs, latencySlackMs)
      const dear = scaled(all, entry => entry.priceUinr)
      return entry => [reliabilityClass(entry.facts.failureRate ?? 0), slow(entry) + dear(entry)]
    }
    default:
      return assertNever(optimize)
  }
}

const reliabilityClass = (failureRate: number): number => reliabilityClasses.filter(limit => failureRate > limit).length

function blended(all: readonly Known[], weights: NonNullable<RouterFields['weights']>): (entry: Known) => Score {
  const axes: readonly (readonly [number, (entry: Known) => number])[] = [
    [weights.price, scaled(all, entry => entry.priceUinr)],
    [weights.latency, scaled(all, entry => entry.facts.latencyMs, latencySlackMs)],
    [weights.uptime, entry => entry.facts.failureRate ?? 0],
    [weights.throughput, entry => 1 - (entry.facts.headroom ?? unmeasured)],
  ]
  const counted = axes.filter(([weight]) => weight > 0)
  // Each weight is divided by the largest weight, so that huge weights do not overflow.
  const largest = Math.max(...counted.map(([weight]) => weight), 0)
  if (counted.length === 0) return entry => [entry.priceUinr]
  return entry => [counted.reduce((sum, [weight, value]) => sum + (weight / largest) * value(entry), 0)]
}

/**
 * Returns a function that gives a value as a share of the largest value. It gives 0 when all values are 0, and the middle for an unmeasured value.
 * `slack` is added to each value, so that differences far below it hardly count.
 */
function scaled(all: readonly Known[], measure: (entry: Known) => number | null, slack = 0): (entry: Known) => number {
  const most = Math.max(0, ...all.map(measure).filter(value => value !== null)) + slack
  return entry => {
    const value = measure(entry)
    if (value === null) return unmeasured
    return most > 0 ? (value + slack) / most : 0
  }
}
