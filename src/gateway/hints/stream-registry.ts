/** The open streams of hints of this process, with the bounds of their number. */
import { fail } from '../../platform/errors.ts'
import type { NoPlace, Shares } from '../../platform/shares.ts'
import type { HintStream } from './hint-stream.ts'

/** Maximum number of streams that one person may have open in one process. A browser needs one. The others are for other browsers and for reconnects. */
export const perPersonMax = 16
const retryAfterSeconds = 15

export class StreamRegistry {
  readonly #places: Shares<string>
  readonly #founderOf: (orgId: number) => string
  readonly #byOrg = new Map<number, Set<HintStream>>()
  readonly #bySession = new Map<string, Set<HintStream>>()
  readonly #byPerson = new Map<number, number>()
  readonly #founders = new Map<HintStream, string>()

  /** `places` has the streams that all founders of organisations share (setting HINT_STREAMS_MAX). */
  constructor(places: Shares<string>, founderOf: (orgId: number) => string) {
    this.#places = places
    this.#founderOf = founderOf
  }

  get size(): number {
    return this.#founders.size
  }

  all(): Iterable<HintStream> {
    return this.#founders.keys()
  }

  ofOrg(orgId: number): ReadonlySet<HintStream> | undefined {
    return this.#byOrg.get(orgId)
  }

  ofSession(sessionId: string): Iterable<HintStream> {
    return this.#bySession.get(sessionId) ?? []
  }

  /** Adds a stream. Returns true when it is the first one of its organisation. Throws `places_taken`. */
  add(stream: HintStream): boolean {
    const { orgId, userId, sessionId } = stream.principal
    const own = this.#byPerson.get(userId) ?? 0
    if (own >= perPersonMax) throw tooManyOfPerson()
    const founder = this.#founderOf(orgId)
    const why = this.#places.take(founder)
    if (why !== null) throw tooMany(why)
    this.#founders.set(stream, founder)
    this.#byPerson.set(userId, own + 1)
    put(this.#bySession, sessionId, stream)
    return put(this.#byOrg, orgId, stream) === 1
  }

  /** Removes a stream. Returns true when it was the last one of its organisation. A second call does nothing. */
  remove(stream: HintStream): boolean {
    const founder = this.#founders.get(stream)
    if (founder === undefined) return false
    this.#founders.delete(stream)
    this.#places.give(founder)
    const { orgId, userId, sessionId } = stream.principal
    const left = (this.#byPerson.get(userId) ?? 1) - 1
    if (left === 0) this.#byPerson.delete(userId)
    else this.#byPerson.set(userId, left)
    drop(this.#bySession, sessionId, stream)
    return drop(this.#byOrg, orgId, stream)
  }
}

function put<K>(map: Map<K, Set<HintStream>>, key: K, stream: HintStream): number {
  const set = map.get(key) ?? new Set()
  map.set(key, set.add(stream))
  return set.size
}

function drop<K>(map: Map<K, Set<HintStream>>, key: K, stream: HintStream): boolean {
  const set = map.get(key)
  set?.delete(stream)
  if (set?.size === 0) map.delete(key)
  return set?.size === 0
}

function tooManyOfPerson() {
  return fail('places_taken', {
    message: `You have ${perPersonMax} streams of hints open in this process, which is the most for one person. Close a console, or read without hints.`,
    retryAfterSeconds,
    extra: { limit_name: 'hint_streams_per_person', scope: 'person' },
  })
}

function tooMany(why: NoPlace) {
  const message =
    why === 'share'
      ? 'Your organisation, with the others of its founder, has as many streams of hints open as it may have in this process beside others (HINT_STREAMS_MAX, ORG_SHARE_PERCENT). Read without hints.'
      : 'This process has as many streams of hints open as it takes (HINT_STREAMS_MAX). Read without hints.'
  return fail('places_taken', { message, retryAfterSeconds, extra: { limit_name: 'HINT_STREAMS_MAX', ...(why === 'share' ? { scope: 'org' } : {}) } })
}
