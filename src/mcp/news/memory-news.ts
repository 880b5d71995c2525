/**
 * Reports changes of memory to one listener. It finds the listener's URIs that contain a changed key, and checks whether the caller may still read
 * that key. The check runs when the change is reported, so a share that just ended causes no more notifications.
 */
import type { Log } from '../../platform/observe/log.ts'
import type { BearerPrincipal } from '../../platform/security/principal.ts'
import { type MemoryPlace, memoryPlaceOf } from '../resources/memory-uri.ts'
import type { ChangeSink } from '../surface.ts'

/** A change of one object, with the fields that are reported. */
export interface KeyChange {
  readonly key: string
  readonly action: string
  readonly etag: string | null
  readonly author: { readonly user: string; readonly agent?: string; readonly verified?: boolean } | null
  readonly at: Date
}

/** The source of changes, and the check of the prefixes that a caller may read. */
export interface MemoryWatch {
  /**
   * Calls the listener for every change of the organisation, on any process, that is made after the promise resolves. Returns a function that stops
   * it.
   */
  on(orgId: number, listener: (change: KeyChange) => void): Promise<() => void>
  /** Returns the prefixes that the caller may read now, each with its trailing slash. The list is empty when no memory is configured. */
  scopesOf(principal: BearerPrincipal): Promise<string[]>
}

/** Maximum number of changed keys that wait for a check of the caller's rights. Above this number, every URI counts as changed. */
const waitingMax = 500

export class MemoryNews {
  readonly #watch: MemoryWatch
  readonly #principal: BearerPrincipal
  readonly #sink: ChangeSink
  readonly #log: Log
  #places: readonly { readonly uri: string; readonly place: MemoryPlace }[] = []
  readonly #waiting = new Map<string, KeyChange>()
  #isOverfull = false
  #isAsking = false

  constructor(watch: MemoryWatch, principal: BearerPrincipal, sink: ChangeSink, log: Log) {
    this.#watch = watch
    this.#principal = principal
    this.#sink = sink
    this.#log = log
  }

  /** Subscribes to the URIs that the caller may read now. The objects need not exist yet. Returns those URIs. */
  async take(uris: readonly string[]): Promise<string[]> {
    const scopes = await this.#watch.scopesOf(this.#principal)
    this.#places = uris.flatMap(uri => {
      const place = memoryPlaceOf(uri)
      return place !== null && isReadable(place, scopes) ? [{ uri, place }] : []
    })
    return this.#places.map(({ uri }) => uri)
  }

  /** Listens until the returned function is called. */
  listen(): Promise<() => void> {
    return this.#watch.on(this.#principal.orgId, change => this.#onNews(change))
  }

  #onNews(change: KeyChange): void {
    if (!this.#places.some(({ place }) => holds(place, change.key))) return
    this.#waiting.delete(change.key)
    this.#waiting.set(change.key, change)
    if (this.#waiting.size > waitingMax) {
      this.#waiting.clear()
      this.#isOverfull = true
    }
    if (!this.#isAsking) void this.#notify()
  }

  async #notify(): Promise<void> {
    this.#isAsking = true
    try {
      while (this.#waiting.size > 0 || this.#isOverfull) {
        const scopes = await this.#watch.scopesOf(this.#principal)
        const changes = [...this.#waiting.values()]
        this.#waiting.clear()
        if (this.#isOverfull) this.#notifyAll(scopes)
        this.#isOverfull = false
        for (const change of changes) if (isReadable({ kind: 'object', key: change.key }, scopes)) this.#notifyOne(change)
      }
    } catch (error) {
      // The rights cannot be checked now. The next change checks them again and reports every URI as changed.
      this.#log.warn('mcp.news_untold', { orgId: this.#principal.orgId, error })
      this.#waiting.clear()
      this.#isOverfull = true
    } finally {
      this.#isAsking = false
    }
  }

  #notifyOne({ key, action, etag, author, at }: KeyChange): void {
    const detail = { key, action, etag, author, at: at.toISOString() }
    for (const { uri, place } of this.#places) if (holds(place, key)) this.#sink.notify({ kind: 'resource', uri, detail })
  }

  #notifyAll(scopes: readonly string[]): void {
    for (const { uri, place } of this.#places) if (isReadable(place, scopes)) this.#sink.notify({ kind: 'resource', uri })
  }
}

/** Returns whether the place contains the key. */
function holds(place: MemoryPlace, key: string): boolean {
  return place.kind === 'object' ? place.key === key : key.startsWith(place.prefix)
}

/** Returns whether the place is readable. A key is readable when it is below a readable prefix. A folder is readable when a part of it is readable. */
function isReadable(place: MemoryPlace, scopes: readonly string[]): boolean {
  if (place.kind === 'object') return scopes.some(scope => place.key.startsWith(scope) && place.key.length > scope.length)
  return scopes.some(scope => place.prefix.startsWith(scope) || scope.startsWith(place.prefix))
}
