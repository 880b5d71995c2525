/** Writes one webhook event for each outage, even when several processes see it. It also tells a starting process which circuits are open. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db, Tx } from '../../../platform/db/db.ts'
import type { Log } from '../../../platform/observe/log.ts'
import type { Ids } from '../../../platform/values/ids.ts'
import { customReference } from '../../byok/custom-servers/custom-route.ts'
import { type CatalogSnapshot, type RouteId, routeId } from '../../catalog/model.ts'
import { broadcast } from '../../webhooks/events/broadcast.ts'
import { emit, eventId } from '../../webhooks/events/events.ts'
import type { CircuitChange, CircuitState } from '../circuits/circuit.ts'
import { partsOfOrgKey, type RouteCircuits } from '../circuits/route-circuits.ts'
import { beginOutage, deleteOldOutages, endOutage, listOutages, noteOutage } from './outage-queries.ts'

/** An outage without a report for this time counts as over. Either its end was lost, or nobody calls the route. Our choice. */
const staleMs = 60 * 60_000
/** Wait after a failed write, and the time after which a change is dropped, in milliseconds. Our choice. */
const retryMs = 2_000
const giveUpMs = 15 * 60_000
/** Maximum number of changes that wait to be written. */
const waitingMax = 1_000

interface Told {
  readonly route: RouteId
  readonly change: CircuitChange
  readonly state: CircuitState
  readonly atMs: number
}

export interface OutagesDeps {
  readonly db: Db
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly circuits: () => Pick<RouteCircuits, 'openedElsewhere'>
  readonly findServerOwner: FindServerOwner
  catalog(): CatalogSnapshot
}

/**
 * An outage begins when a closed circuit opens, and ends when a dial succeeds. A failed probe in between continues the outage. The beginning causes
 * the event `provider.circuit_open`. A failed write is repeated for a while. Calls never wait for a write and never fail because of one.
 */
export class Outages {
  readonly #deps: OutagesDeps
  readonly #waiting: Told[] = []
  #writing: Promise<void> | null = null
  #cancelRetry: (() => void) | null = null
  #stopped = false

  constructor(deps: OutagesDeps) {
    this.#deps = deps
  }

  /**
   * Opens the circuits that are open in other processes, or were open when this process last ran. A circuit stays open for its remaining time and is
   * half-open afterwards.
   */
  async start(): Promise<void> {
    const { db, clock, circuits } = this.#deps
    const nowMs = clock.nowMs()
    for (const { route, openUntil } of await db.many(listOutages, new Date(nowMs - staleMs))) circuits().openedElsewhere(route, openUntil.getTime() - nowMs)
  }

  /** Returns immediately. The write runs in the background. */
  notify(route: RouteId, change: CircuitChange, state: CircuitState): void {
    if (this.#waiting.length >= waitingMax) this.#drop('too_many')
    this.#waiting.push({ route, change, state, atMs: this.#deps.clock.nowMs() })
    if (this.#cancelRetry === null) this.#begin()
  }

  /** Resolves after a last attempt to write the waiting changes. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelRetry?.()
    await this.#writing
    this.#begin()
    await this.#writing
  }

  #begin(): void {
    if (this.#writing === null && this.#waiting.length > 0) this.#writing = this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    await this.#writeWaiting()
    // This runs in the same turn of the event loop as the last check of the queue, so no change is left in the queue.
    this.#writing = null
  }

  async #writeWaiting(): Promise<void> {
    for (let told = this.#waiting[0]; told !== undefined; told = this.#waiting[0]) {
      const next = told
      try {
        await this.#write(next)
        this.#waiting.splice(0, this.#waiting[0] === next ? 1 : 0)
      } catch (error) {
        this.#deps.log.warn('circuit_outage_not_written', { error })
        if (this.#deps.clock.nowMs() - next.atMs > giveUpMs && this.#waiting[0] === next) this.#drop('too_old')
        this.#retryLater()
        return
      }
    }
  }

  #drop(code: string): void {
    this.#waiting.shift()
    this.#deps.log.error('circuit_outage_dropped', { code })
  }

  #retryLater(): void {
    if (this.#stopped) return
    this.#cancelRetry = this.#deps.clock.after(retryMs, () => {
      this.#cancelRetry = null
      this.#begin()
    })
  }

  async #write({ route, change, state, atMs }: Told): Promise<void> {
    const { db } = this.#deps
    const openUntil = new Date(state.openUntilMs ?? atMs)
    if (change === 'closed') await db.exec(endOutage, route)
    else if (change === 'reopened') await db.exec(noteOutage, route, new Date(atMs), openUntil)
    else await this.#open(route, state, atMs, openUntil)
  }

  async #open(route: RouteId, { failures }: CircuitState, atMs: number, openUntil: Date): Promise<void> {
    const { db, ids, catalog, findServerOwner } = this.#deps
    const audience = await audienceOf(route, catalog(), findServerOwner)
    await db.tx(async (tx: Tx) => {
      await tx.exec(deleteOldOutages, new Date(atMs - staleMs))
      if ((await tx.exec(beginOutage, route, new Date(atMs), openUntil)) === 0) {
        await tx.exec(noteOutage, route, new Date(atMs), openUntil)
        return
      }
      if (audience === null) return
      // Each organisation gets one event for an outage. It may already have one, of its own or as part of an event for all organisations.
      const others = (await tx.many(listOutages, new Date(atMs - staleMs))).map(outage => outage.route).filter(other => other !== route)
      if (audience.orgId !== null && others.includes(partsOfOrgKey(route)?.routeId ?? '')) return
      const heard = new Set(others.flatMap(other => partsOfOrgKey(other) ?? []).flatMap(({ orgId, routeId }) => (routeId === route ? [orgId] : [])))
      const { orgId, provider, model } = audience
      const event = { type: 'provider.circuit_open', atMs, data: { provider, model, failures, retry_at: Math.ceil(openUntil.getTime() / 1000) } } as const
      if (orgId === null) await broadcast(tx, ids, event, heard)
      else await emit(tx, { ...event, id: eventId(ids, atMs), orgId })
    })
  }
}

/** The organisations that get the event when a circuit opens, and the names of the route in that event. */
export interface OutageAudience {
  /** Null means every organisation. Otherwise only this organisation gets the event. */
  readonly orgId: number | null
  readonly provider: string
  readonly model: string
}

/** Finds the organisation that owns the server of a state key. Returns null when the server is no longer registered. */
export type FindServerOwner = (serverId: number) => Promise<{ readonly orgId: number; readonly slug: string; readonly modelId: string } | null>

const ownServer = /^byoe#([0-9]{1,10})$/

/**
 * Returns who gets the event. The outage of a catalog route concerns every organisation. If the circuit belongs to one organisation, or the route is
 * an organisation's own server, only that organisation gets the event. Returns null for circuits with the key `provider/*`. Several models on
 * callers' own keys share such a circuit, so it is unknown whose calls failed.
 */
export async function audienceOf(route: RouteId, catalog: CatalogSnapshot, findServerOwner: FindServerOwner): Promise<OutageAudience | null> {
  const parts = partsOfOrgKey(route)
  if (parts !== null) {
    const all = await audienceOf(parts.routeId, catalog, findServerOwner)
    return all === null ? null : { ...all, orgId: parts.orgId }
  }
  const server = ownServer.exec(route)
  if (server !== null) {
    const owner = await findServerOwner(Number(server[1]))
    return owner === null ? null : { orgId: owner.orgId, provider: customReference(owner.slug), model: owner.modelId }
  }
  for (const model of catalog.models.values()) {
    const found = model.kind === 'virtual' ? undefined : model.routes.find(candidate => routeId(candidate) === route)
    if (found !== undefined) return { orgId: null, provider: found.provider.id, model: found.modelId }
  }
  return null
}
