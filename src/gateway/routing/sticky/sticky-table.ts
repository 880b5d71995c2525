/** Remembers, in this process only, where each conversation was served last. */
import type { RouteId } from '../../catalog/model.ts'

/** The most conversations that are remembered, of all organisations and of one. */
const conversationsMax = 50_000
const orgConversationsMax = 5_000

/** Where a conversation was served last. */
export interface StickyEntry {
  readonly modelId: string
  /** The state key of the route whose cache has the conversation. Null when only the model is kept. */
  readonly stateKey: RouteId | null
  /** The share of the last prompt that the route's cache had afterwards, 0 to 1. */
  readonly cachedShare: number
  readonly expiresAtMs: number
}

/**
 * The entries of each organisation, the ones that were set last at the end. An organisation that has its share loses its own oldest entry. When the whole
 * table is full, the organisation that was served longest ago loses its oldest one.
 */
export class StickyTable {
  readonly #orgs = new Map<number, Map<string, StickyEntry>>()
  readonly #most: number
  readonly #orgMost: number
  #size = 0

  constructor(most = conversationsMax, orgMost = orgConversationsMax) {
    this.#most = most
    this.#orgMost = orgMost
  }

  get size(): number {
    return this.#size
  }

  /** Returns the entry of a conversation, or null when there is none or its time is over. */
  get(orgId: number, key: string, nowMs: number): StickyEntry | null {
    const entry = this.#orgs.get(orgId)?.get(key)
    if (entry === undefined) return null
    if (nowMs < entry.expiresAtMs) return entry
    this.delete(orgId, key)
    return null
  }

  set(orgId: number, key: string, entry: StickyEntry): void {
    const entries = this.#orgs.get(orgId) ?? new Map<string, StickyEntry>()
    if (entries.delete(key)) this.#size--
    this.#orgs.delete(orgId)
    this.#orgs.set(orgId, entries)
    if (entries.size >= this.#orgMost) this.#dropOldest(orgId, entries)
    else if (this.#size >= this.#most) this.#dropOfOldestOrg()
    entries.set(key, entry)
    this.#size++
    this.#orgs.set(orgId, entries)
  }

  delete(orgId: number, key: string): void {
    const entries = this.#orgs.get(orgId)
    if (entries?.delete(key) !== true) return
    this.#size--
    if (entries.size === 0) this.#orgs.delete(orgId)
  }

  /** Forgets the conversations of an organisation. */
  forget(orgId: number): void {
    this.#size -= this.#orgs.get(orgId)?.size ?? 0
    this.#orgs.delete(orgId)
  }

  clear(): void {
    this.#orgs.clear()
    this.#size = 0
  }

  #dropOfOldestOrg(): void {
    for (const [orgId, entries] of this.#orgs) {
      if (entries.size === 0) continue
      this.#dropOldest(orgId, entries)
      return
    }
  }

  #dropOldest(orgId: number, entries: ReadonlyMap<string, StickyEntry>): void {
    const [oldest] = entries.keys()
    if (oldest !== undefined) this.delete(orgId, oldest)
  }
}
