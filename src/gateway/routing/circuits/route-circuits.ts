/**
 * Circuits by organisation. Failures that one organisation sees open the circuit for that organisation only. The circuit opens for all organisations
 * when organisations of two different founders have seen the route fail on the platform's key. A founder is the person who created an organisation.
 * No caller can therefore block a route for others with bad requests. Decision 0386 gives the reasons.
 */
import { LRUCache } from 'lru-cache'
import type { RouteId } from '../../catalog/model.ts'
import type { Circuits } from './circuit.ts'

/** Number of different founders whose organisations must see failures before the circuit opens for all. Our choice. */
export const witnessesMin = 2
/** Maximum number of routes whose failures are remembered, and of organisations for each route. */
const routesMax = 20_000
const witnessesMax = 50

/** Returns the key of one organisation's circuit on a route. It is never shown to callers. */
export const orgKeyOf = (routeId: RouteId, orgId: number): string => `#${orgId} ${routeId}`

/** Returns the key of the circuit for an organisation's calls on its own key. These calls say nothing about the route as the platform serves it. */
export const ownKeyOf = (routeId: RouteId, orgId: number): string => `#${orgId}k ${routeId}`

/** The parts of the key of an organisation's circuit. */
export interface OrgKeyParts {
  readonly orgId: number
  readonly routeId: RouteId
  /** True for the circuit of calls on the organisation's own key. */
  readonly isOwnKey: boolean
}

/** Returns the parts of an organisation's circuit key. Returns null for the key of a route's own circuit. */
export function partsOfOrgKey(key: string): OrgKeyParts | null {
  const found = /^#([0-9]{1,10})(k?) (.+)$/s.exec(key)
  return found === null ? null : { orgId: Number(found[1]), isOwnKey: found[2] === 'k', routeId: found[3] ?? '' }
}

/** Returns whether the route is a server that one organisation registered. It needs no protection from other organisations. */
const isPrivate = (routeId: RouteId): boolean => routeId.startsWith('byoe#')

const allClosed: Pick<Circuits, 'isOpen'> = { isOpen: () => false }

/** The founder of an organisation, as the result of a look-up. Null when the look-up failed. */
type FounderLook = Promise<readonly [orgId: number, founder: string] | null>

export interface RouteCircuitsOptions {
  /** Consecutive failures that open a circuit (CIRCUIT_FAILURES). */
  readonly failuresToOpen: number
  /**
   * Returns the founder of an organisation. Several organisations of one founder count as one. When the function is left out or returns null, each
   * organisation counts alone.
   */
  founderOf?(orgId: number): string | null | Promise<string | null>
}

/**
 * The circuits of all routes, for each organisation and for all organisations together. They use the dials of this process and the reports of other
 * processes.
 */
export class RouteCircuits {
  readonly #circuits: Circuits
  readonly #failuresToOpen: number
  readonly #founderOf: NonNullable<RouteCircuitsOptions['founderOf']>
  /**
   * For each route, the failures that each organisation saw since the last success. One founder contributes at most half of the failures that open
   * the circuit.
   */
  readonly #witnesses = new LRUCache<RouteId, Map<number, number>>({ max: routesMax })
  /** The only organisation that this process has seen. Null when it has seen none or several. */
  #soleOrgId: number | null = null
  #hasSeveral = false

  constructor(circuits: Circuits, { failuresToOpen, founderOf = String }: RouteCircuitsOptions) {
    this.#circuits = circuits
    this.#founderOf = founderOf
    this.#failuresToOpen = failuresToOpen
  }

  /** Is called when the installation has more than one organisation. The view of a single organisation is then no longer the public state. */
  hasSeveralOrganisations(): void {
    this.#hasSeveral = true
    this.#soleOrgId = null
  }

  success(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (isOwnKey && !isPrivate(routeId)) {
      if (!this.#circuits.isQuiet) this.#circuits.success(ownKeyOf(routeId, orgId))
      return
    }
    if (this.#witnesses.size > 0) this.#witnesses.delete(routeId)
    if (this.#circuits.isQuiet) return
    this.#circuits.success(routeId)
    if (!isPrivate(routeId)) this.#circuits.success(orgKeyOf(routeId, orgId))
  }

  failure(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (isPrivate(routeId)) {
      this.#circuits.failure(routeId)
      return
    }
    this.#sees(orgId)
    if (isOwnKey) {
      this.#circuits.failure(ownKeyOf(routeId, orgId))
      return
    }
    this.#circuits.failure(orgKeyOf(routeId, orgId))
    this.#witness(routeId, orgId, 1)
  }

  /**
   * Reports a 429 of the provider. A single 429 is a sign of load. The second in a row that this organisation sees, and each one after it, counts as
   * a failure.
   */
  rateLimited(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (isPrivate(routeId)) this.#circuits.rateLimited(routeId)
    else if (isOwnKey) this.#circuits.rateLimited(ownKeyOf(routeId, orgId))
    else if (this.#circuits.rateLimited(orgKeyOf(routeId, orgId))) this.#witness(routeId, orgId, 1)
    else this.#circuits.undecided(routeId)
  }

  /** Is called before a dial. Returns false when another call probes the route for all organisations or for this one. */
  begins(routeId: RouteId, orgId: number, isOwnKey = false): boolean {
    this.#sees(orgId)
    if (this.#circuits.isQuiet) return true
    if (isOwnKey && !isPrivate(routeId)) return this.#circuits.begins(ownKeyOf(routeId, orgId))
    if (!this.#circuits.begins(routeId)) return false
    if (isPrivate(routeId) || this.#circuits.begins(orgKeyOf(routeId, orgId))) return true
    this.#circuits.undecided(routeId)
    return false
  }

  /** Reports that the dial gave no information about the route. If it was the probe, the next dial becomes the probe. */
  undecided(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (this.#circuits.isQuiet) return
    if (isOwnKey && !isPrivate(routeId)) {
      this.#circuits.undecided(ownKeyOf(routeId, orgId))
      return
    }
    this.#circuits.undecided(routeId)
    if (!isPrivate(routeId)) this.#circuits.undecided(orgKeyOf(routeId, orgId))
  }

  /** Returns whether calls of this organisation should try other routes first. */
  isOpen(routeId: RouteId, orgId: number, nowMs: number): boolean {
    if (this.#circuits.isQuiet) return false
    if (this.#circuits.isOpen(routeId, nowMs)) return true
    if (isPrivate(routeId)) return false
    return this.#circuits.isOpen(orgKeyOf(routeId, orgId), nowMs) || this.#circuits.isOpen(ownKeyOf(routeId, orgId), nowMs)
  }

  /** Returns the circuits as they apply to the calls of one organisation. */
  of(orgId: number): Pick<Circuits, 'isOpen'> {
    return this.#circuits.isQuiet ? allClosed : { isOpen: (routeId, nowMs) => this.isOpen(routeId, orgId, nowMs) }
  }

  /** Returns the public flag. It is false when the circuit is open for all organisations, or for the only organisation that this process has seen. */
  available(key: string): boolean {
    if (!this.#circuits.available(key)) return false
    if (this.#soleOrgId === null || partsOfOrgKey(key) !== null) return true
    return this.#circuits.available(orgKeyOf(key, this.#soleOrgId)) && this.#circuits.available(ownKeyOf(key, this.#soleOrgId))
  }

  /** Returns the routes that are not available. */
  openRoutes(): readonly RouteId[] {
    const open = this.#circuits.openRoutes().flatMap(key => {
      const parts = partsOfOrgKey(key)
      if (parts === null) return [key]
      return parts.orgId === this.#soleOrgId ? [parts.routeId] : []
    })
    return [...new Set(open)]
  }

  remainingMs(key: string): number {
    return this.#circuits.remainingMs(key)
  }

  /**
   * Records that another process has opened a circuit for `remainingMs` from now. The key names the circuit of a route, or of one organisation on a
   * route.
   */
  openedElsewhere(key: string, remainingMs: number): void {
    this.#circuits.openedElsewhere(key, remainingMs)
    const parts = partsOfOrgKey(key)
    if (parts === null || remainingMs <= 0) return
    this.#sees(parts.orgId)
    if (!parts.isOwnKey) this.#witness(parts.routeId, parts.orgId, this.#failuresToOpen)
  }

  /** Records that another process has had a success with this circuit key. */
  closedElsewhere(key: string): void {
    this.#circuits.closedElsewhere(key)
    const parts = partsOfOrgKey(key)
    if (parts?.isOwnKey !== true) this.#witnesses.delete(parts?.routeId ?? key)
  }

  #sees(orgId: number): void {
    if (this.#hasSeveral || this.#soleOrgId === orgId) return
    if (this.#soleOrgId === null) this.#soleOrgId = orgId
    else this.hasSeveralOrganisations()
  }

  #witness(routeId: RouteId, orgId: number, failures: number): void {
    const seen = this.#witnesses.get(routeId) ?? new Map<number, number>()
    this.#witnesses.set(routeId, seen)
    if (seen.has(orgId) || seen.size < witnessesMax) seen.set(orgId, this.#atMostHalf((seen.get(orgId) ?? 0) + failures))
    const unknown = this.#decide(routeId, seen)
    if (unknown === null) return
    this.#circuits.undecided(routeId)
    if (unknown.length === 0) return
    // An organisation counts as a witness only when its founder can be looked up. Its own circuit opens in any case.
    void Promise.all(unknown).then(looks => {
      const known = looks.filter(look => look !== null)
      if (this.#witnesses.get(routeId) === seen) this.#decide(routeId, seen, new Map(known))
    })
  }

  /**
   * Opens the route's circuit and returns null when enough founders have seen the route fail. Otherwise returns the look-ups of the founders that are
   * not known yet.
   */
  #decide(routeId: RouteId, seen: Map<number, number>, known: ReadonlyMap<number, string> = new Map()): FounderLook[] | null {
    if (seen.size < witnessesMin) return []
    const unknown: FounderLook[] = []
    const byFounder = new Map<string, number>()
    for (const [orgId, failures] of seen) {
      const founder = known.get(orgId) ?? this.#founderOf(orgId)
      if (founder instanceof Promise) {
        const look = founder.then<readonly [number, string]>(found => [orgId, found ?? String(orgId)])
        unknown.push(look.catch(() => null))
      } else byFounder.set(founder ?? String(orgId), this.#atMostHalf((byFounder.get(founder ?? String(orgId)) ?? 0) + failures))
    }
    const count = [...byFounder.values()].reduce((sum, each) => sum + each, 0)
    // A circuit that has opened for all organisations needs no count. It opens again when two founders see its probe fail. When one founder sees
    // that, the next probe comes from another organisation.
    const wanted = this.#circuits.isKnown(routeId) ? 0 : this.#failuresToOpen
    if (byFounder.size < witnessesMin || count < wanted) return unknown
    seen.clear()
    this.#circuits.open(routeId)
    return null
  }

  #atMostHalf(failures: number): number {
    return Math.min(Math.ceil(this.#failuresToOpen / 2), failures)
  }
}
