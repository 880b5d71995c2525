/**
 * Searches the text of objects that a caller may read. Objects are read from the store one after the other. Nothing is kept, and there is no index of
 * content. A call does a bounded amount of work, and its cursor continues at the line where it stopped. Decisions 0218 and 0496 say why.
 */
import { fail, type GatewayError } from '../../platform/errors.ts'
import { Shares } from '../../platform/shares.ts'
import { KeyQueue } from '../access/key-queue.ts'
import type { ConfiguredStore, MemoryCall } from '../access/memory-call.ts'
import { parseKey, parsePrefix } from '../memory-key.ts'
import { cursorFrom, cursorText, notOurCursor } from '../objects/index/page-cursor.ts'
import type { MemoryObjectsDeps } from '../objects/object-deps.ts'
import { storeFailure } from '../objects/object-failures.ts'
import type { MemoryObjects } from '../objects/objects.ts'
import { withinStoreTime } from '../store-time.ts'
import { ReadAhead } from './search-ahead.ts'
import { type Position, type SearchMatch, SearchRun } from './search-run.ts'
import { type LineMatcher, matcherOf, type SearchParams, searchCharsMax } from './search-text.ts'

export interface SearchResult {
  readonly matches: readonly SearchMatch[]
  /** Null when everything was searched. A page with a cursor may have fewer matches than the limit, or no matches. */
  readonly next_cursor: string | null
  readonly scanned: { readonly objects: number; readonly bytes: number }
}

export interface SearchRequest extends SearchParams {
  readonly prefix: string
  /** Maximum number of matches of one call. */
  readonly limit: number
  readonly cursor?: string | undefined
}

export interface MemorySearchDeps extends Pick<MemoryObjectsDeps, 'clock' | 'objectBytesMax'> {
  readonly objects: MemoryObjects
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
  /** Returns the founder of an organisation. The places for concurrent searches are shared fairly between founders. */
  founderOf(orgId: number): string
}

/** Maximum number of concurrent searches in one process. A further search is refused. Most of them only wait for their stores: one computes at a time. */
const searchesAtOnce = 64
/** Percentage of the places that others leave free that one founder may use. */
const founderPercent = 50
/** Maximum number of concurrent searches of one founder and of one organisation. */
const searchesOfFounderMax = 8
const searchesOfOneMax = 4
const compilePauseMsMax = 100

export class MemorySearch {
  readonly #deps: MemorySearchDeps
  /** The running searches of each founder. */
  readonly #places = new Shares<string>(searchesAtOnce, founderPercent)
  /** The organisations of the running searches, one entry for each search. */
  readonly #running: number[] = []
  readonly #turns: KeyQueue

  constructor(deps: MemorySearchDeps) {
    this.#deps = deps
    this.#turns = new KeyQueue(deps.clock)
  }

  /**
   * Returns one page of matches. Throws the errors of a list, `bad_request` for an invalid search, and `rate_limit_exceeded` when too many searches
   * run.
   */
  async search(call: MemoryCall, request: SearchRequest): Promise<SearchResult> {
    const { orgId } = call.principal
    const configured = await this.#deps.configured(orgId)
    const prefix = parsePrefix(request.prefix)
    if (request.text === '') throw fail('bad_request', { message: 'Field "q": say what to look for.' })
    if (request.text.length > searchCharsMax) throw fail('bad_request', { message: `Field "q": at most ${searchCharsMax} characters.` })
    const position = request.cursor === undefined ? null : positionFrom(request.cursor)
    const founder = this.#deps.founderOf(orgId)
    this.#begin(orgId, founder)
    try {
      const matcher = await this.#matcherOf(request, call.signal)
      return await withinStoreTime(this.#deps.clock, call.signal, signal =>
        this.#run({ ...call, signal }, configured, prefix, matcher, request.limit, position),
      )
    } catch (error) {
      throw storeFailure(error)
    } finally {
      this.#running.splice(this.#running.indexOf(orgId), 1)
      this.#places.give(founder)
    }
  }

  /** Compiles an expression in a turn of the searches. The turn also contains a pause as long as the compilation, so that other work runs. */
  async #matcherOf(request: SearchRequest, signal: AbortSignal): Promise<LineMatcher> {
    if (!request.isRegex) return matcherOf(request)
    const { clock } = this.#deps
    return await this.#turns.run('search', async () => {
      const startMs = clock.monotonicMs()
      try {
        return matcherOf(request)
      } finally {
        await clock.sleep(Math.min(Math.ceil(clock.monotonicMs() - startMs), compilePauseMsMax), signal)
      }
    })
  }

  #begin(orgId: number, founder: string): void {
    const ofThisOne = this.#running.filter(running => running === orgId).length
    if (ofThisOne >= searchesOfOneMax) throw tooMany(`This organisation runs ${searchesOfOneMax} searches concurrently.`)
    if (this.#places.of(founder) >= searchesOfFounderMax)
      throw tooMany(`The organisations of this one's founder run ${searchesOfFounderMax} searches concurrently.`)
    if (this.#places.take(founder) !== null) throw tooMany('Too many searches run concurrently.')
    this.#running.push(orgId)
  }

  async #run(
    call: MemoryCall,
    configured: ConfiguredStore,
    prefix: string,
    matcher: LineMatcher,
    limit: number,
    position: Position | null,
  ): Promise<SearchResult> {
    const { clock, objects, objectBytesMax } = this.#deps
    const walk = await objects.reads.walk(call, prefix, { after: position?.key ?? null })
    const run = new SearchRun({ turns: this.#turns, clock, matcher, limit, signal: call.signal })
    const ahead = new ReadAhead({ walk, configured, nowMs: clock.nowMs(), objectBytesMax, signal: call.signal })
    // A search that stopped within an object continues in it first, if it may still be read.
    if (position?.etag !== undefined && position.etag !== '' && walk.covers(position.key)) ahead.startWith(position.key)
    for (let next = await ahead.next(); next !== null; next = await ahead.next()) {
      if (run.isSpent(next.sizeBytes)) return resultOf(run, run.last)
      if (await run.look(next.key, await next.object, position)) return resultOf(run, run.last)
    }
    return resultOf(run, null)
  }
}

const tooMany = (why: string): GatewayError => fail('rate_limit_exceeded', { message: `${why} Try again in a second.`, retryAfterSeconds: 1 })

function resultOf({ matches, objects, bytes }: SearchRun, at: Position | null): SearchResult {
  return {
    matches,
    next_cursor: at === null ? null : cursorText('b', JSON.stringify([at.key, at.etag, at.line, at.offset, at.start])),
    scanned: { objects, bytes },
  }
}

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

function positionFrom(cursor: string): Position {
  const text = cursorFrom('b', cursor)
  try {
    const [key, etag, line, offset, start] = JSON.parse(text) as unknown[]
    if (typeof key === 'string' && typeof etag === 'string' && isCount(line) && isCount(offset) && isCount(start))
      return { key: parseKey(key), etag, line, offset, start }
  } catch {
    // Every failure above means that the cursor is invalid.
  }
  throw notOurCursor()
}
