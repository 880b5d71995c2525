/**
 * Circuits by organisation. What one organisation sees of a route opens the circuit for it alone; for all it opens when two of different
 * founders have seen the route fail on the platform's key. So nobody can take a route away from others by what it sends there.
 * Decision 0386 says why.
 */
import { LRUCache } from 'lru-cache'
import type { RouteId } from '../../catalog/model.ts'
import type { Circuits } from './circuit.ts'

/** Founders of organisations whose failures on a route must come together before its circuit opens for all. Ours. */
export const witnessesMin = 2
/** Routes, and organisations of each, whose failures are remembered. */
const routesMax = 20_000
const witnessesMax = 50

/** Under which the circuit of one organisation on a route is kept. Never shown to callers. */
export const orgKeyOf = (routeId: RouteId, orgId: number): string => `#${orgId} ${routeId}`

/** The same for calls on the organisation's own key: they say nothing of the route as the platform serves it. */
export const ownKeyOf = (routeId: RouteId, orgId: number): string => `#${orgId}k ${routeId}`

/** What the key of an organisation's circuit says. */
export interface OrgKeyParts {
  readonly orgId: number
  readonly routeId: RouteId
  /** Of calls on the organisation's own key. */
  readonly isOwnKey: boolean
}

/** The parts of such a key; null for the key of a route's own circuit. */
export function partsOfOrgKey(key: string): OrgKeyParts | null {
  const found = /^#([0-9]{1,10})(k?) (.+)$/s.exec(key)
  return found === null ? null : { orgId: Number(found[1]), isOwnKey: found[2] === 'k', routeId: found[3] ?? '' }
}

/** Servers that one organisation has registered: nobody else is there to be protected from it. */
const isPrivate = (routeId: RouteId): boolean => routeId.startsWith('byoe#')

const allClosed: Pick<Circuits, 'isOpen'> = { isOpen: () => false }

/** An organisation and its founder, once they are looked up; null: they could not be. */
type FounderLook = Promise<readonly [orgId: number, founder: string] | null>

export interface RouteCircuitsOptions {
  /** Failures in a row that open a circuit (CIRCUIT_FAILURES). */
  readonly failuresToOpen: number
  /** Who founded an organisation, or a word for the organisation itself: several of one person see as one. Left out: each organisation for itself. */
  founderOf?(orgId: number): string | null | Promise<string | null>
}

/** The circuits of every route, for each organisation and for all. Counts what dials of this process come to, and what other processes tell. */
export class RouteCircuits {
  readonly #circuits: Circuits
  readonly #failuresToOpen: number
  readonly #founderOf: NonNullable<RouteCircuitsOptions['founderOf']>
  /** By route: failures since its last success, by organisation. One founder counts for half of what opens the circuit at most. */
  readonly #witnesses = new LRUCache<RouteId, Map<number, number>>({ max: routesMax })
  /** The only organisation that has been seen; null: none yet, or several. */
  #soleOrgId: number | null = null
  #hasSeveral = false

  constructor(circuits: Circuits, { failuresToOpen, founderOf = String }: RouteCircuitsOptions) {
    this.#circuits = circuits
    this.#founderOf = founderOf
    this.#failuresToOpen = failuresToOpen
  }

  /** More than one organisation is registered: what one of them sees is not what all see. */
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

  /** A provider's 429: a single one is load; from the second in a row that this organisation sees on it is a failure. */
  rateLimited(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (isPrivate(routeId)) this.#circuits.rateLimited(routeId)
    else if (isOwnKey) this.#circuits.rateLimited(ownKeyOf(routeId, orgId))
    else if (this.#circuits.rateLimited(orgKeyOf(routeId, orgId))) this.#witness(routeId, orgId, 1)
    else this.#circuits.undecided(routeId)
  }

  /** A dial is about to begin. False: another call probes the route, or this organisation's way to it, right now. */
  begins(routeId: RouteId, orgId: number, isOwnKey = false): boolean {
    this.#sees(orgId)
    if (this.#circuits.isQuiet) return true
    if (isOwnKey && !isPrivate(routeId)) return this.#circuits.begins(ownKeyOf(routeId, orgId))
    if (!this.#circuits.begins(routeId)) return false
    if (isPrivate(routeId) || this.#circuits.begins(orgKeyOf(routeId, orgId))) return true
    this.#circuits.undecided(routeId)
    return false
  }

  /** The dial said nothing of the route: if it was the probe, the next one is. */
  undecided(routeId: RouteId, orgId: number, isOwnKey = false): void {
    if (this.#circuits.isQuiet) return
    if (isOwnKey && !isPrivate(routeId)) {
      this.#circuits.undecided(ownKeyOf(routeId, orgId))
      return
    }
    this.#circuits.undecided(routeId)
    if (!isPrivate(routeId)) this.#circuits.undecided(orgKeyOf(routeId, orgId))
  }

  /** Whether calls of this organisation should go elsewhere first. */
  isOpen(routeId: RouteId, orgId: number, nowMs: number): boolean {
    if (this.#circuits.isQuiet) return false
    if (this.#circuits.isOpen(routeId, nowMs)) return true
    if (isPrivate(routeId)) return false
    return this.#circuits.isOpen(orgKeyOf(routeId, orgId), nowMs) || this.#circuits.isOpen(ownKeyOf(routeId, orgId), nowMs)
  }

  /** The circuits as they are for one organisation's calls. */
  of(orgId: number): Pick<Circuits, 'isOpen'> {
    return this.#circuits.isQuiet ? allClosed : { isOpen: (routeId, nowMs) => this.isOpen(routeId, orgId, nowMs) }
  }

  /** The public flag: open for all, or for the only organisation there is. */
  available(key: string): boolean {
    if (!this.#circuits.available(key)) return false
    if (this.#soleOrgId === null || partsOfOrgKey(key) !== null) return true
    return this.#circuits.available(orgKeyOf(key, this.#soleOrgId)) && this.#circuits.available(ownKeyOf(key, this.#soleOrgId))
  }

  /** Routes that are not available. */
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

  /** Another process has opened a circuit, for so long from now: that of a route, or of one organisation on it. */
  openedElsewhere(key: string, remainingMs: number): void {
    this.#circuits.openedElsewhere(key, remainingMs)
    const parts = partsOfOrgKey(key)
    if (parts === null || remainingMs <= 0) return
    this.#sees(parts.orgId)
    if (!parts.isOwnKey) this.#witness(parts.routeId, parts.orgId, this.#failuresToOpen)
  }

  /** Another process has seen it serve. */
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
    // A founder who cannot be looked up is no witness; the organisation's own circuit holds all the same.
    void Promise.all(unknown).then(looks => {
      const known = looks.filter(look => look !== null)
      if (this.#witnesses.get(routeId) === seen) this.#decide(routeId, seen, new Map(known))
    })
  }

  /** Opens the route's circuit when founders enough have seen it fail, and says null; else the founders that have to be looked up first. */
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
    // A circuit that was open for all opens again when two see its probes fail; for one of them the next probe is somebody else's.
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
