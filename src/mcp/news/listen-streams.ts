import type { Clock } from '../../platform/clock.ts'
import { GatewayError } from '../../platform/errors.ts'
import type { McpIdentity } from '../documents/instructions.ts'
import { discoverServer } from '../documents/server-discover.ts'
import { type Surface, SurfaceError } from '../surface.ts'
import type { ListenBody } from './listen-body.ts'
import { type Listener, ListenStream } from './listen-stream.ts'

/** Maximum number of streams that one credential may have open in one process. A client needs one stream. The others are for reconnects. */
const perOwnerMax = 16

/**
 * Reserves one of the streams that an organisation may have open over all processes. Returns a function that releases it. Returns null when all of
 * them are open.
 */
export type HoldStream = (orgId: number) => Promise<(() => void) | null>

/** The bounds of the number of streams. */
export interface StreamRoom {
  readonly hold: HoldStream
  /** Maximum number of streams of one process (setting CHANGE_STREAMS_MAX). */
  readonly max: number
  /** Returns the founder of an organisation. When it is left out, each organisation is its own founder. */
  readonly founderOf?: ((orgId: number) => string) | undefined
}

/** A listener with its founder. The open stream counts against this founder. */
interface Holder extends Listener {
  readonly founder: string
}

/**
 * The open `subscriptions/listen` streams of this process. While there is room, every listener gets a stream. In a full process, a new listener gets
 * the place of a stream of the founder with the most streams. Because founders and not organisations are compared, nobody can use several
 * organisations to keep others out.
 */
export class ListenStreams {
  readonly #clock: Clock
  readonly #identity: McpIdentity
  readonly #room: StreamRoom
  readonly #open = new Map<ListenStream, Holder>()
  readonly #byOwner = new Map<string, number>()
  readonly #byFounder = new Map<string, Set<ListenStream>>()
  #isClosed = false

  constructor(clock: Clock, identity: McpIdentity, room: StreamRoom) {
    this.#clock = clock
    this.#identity = identity
    this.#room = room
  }

  /** Answers one POST. The stream stays open until the client disconnects, its credential ends, its place is needed, or the process ends. */
  async serve(request: Request, body: ListenBody, surface: Surface, asked: Listener): Promise<Response> {
    const listener = { ...asked, founder: (this.#room.founderOf ?? String)(asked.orgId) }
    try {
      if (surface.changes === undefined) throw new SurfaceError('badParams', 'There are no changes to listen to here.')
      this.#admit(listener)
      const stream = new ListenStream(this.#clock, listener, () => discoverServer(surface, this.#identity))
      // The stream is counted before the first await, so streams that are about to open count too.
      this.#add(stream, listener)
      const release = await this.#held(stream, listener)
      stream.onOver = () => {
        this.#remove(stream, listener)
        release()
      }
      return await stream.open(request, body, surface.changes)
    } catch (thrown) {
      if (thrown instanceof SurfaceError) return errorResponse(body, thrown)
      if (!(thrown instanceof GatewayError)) throw thrown
      const { code, message, status } = thrown
      return errorResponse(body, new SurfaceError('refused', message, { code, status }))
    }
  }

  /** Ends all streams in good order, and accepts no new streams. */
  endAll(): void {
    this.#isClosed = true
    for (const stream of this.#open.keys()) stream.end()
  }

  #admit({ owner, founder }: Holder): void {
    if (this.#isClosed) throw new SurfaceError('refused', 'The gateway is restarting: listen again in a moment.', { code: 'shutting_down', status: 503 })
    if ((this.#byOwner.get(owner) ?? 0) >= perOwnerMax)
      throw new SurfaceError('refused', `This credential has ${perOwnerMax} streams open. Close one, or listen to several resources on one stream.`, tooMany)
    if (this.#open.size >= this.#room.max) this.#makeRoom(founder)
  }

  /**
   * Ends the newest stream of the founder with the most streams. Throws SurfaceError when that founder has no more streams than the new listener's
   * founder would have.
   */
  #makeRoom(founder: string): void {
    const own = this.#byFounder.get(founder)?.size ?? 0
    let most: ReadonlySet<ListenStream> = new Set()
    for (const streams of this.#byFounder.values()) if (streams.size > most.size) most = streams
    const newest = [...most].at(-1)
    if (newest === undefined || most.size <= own + 1)
      throw new SurfaceError('refused', 'This gateway has as many streams of changes open as it takes (CHANGE_STREAMS_MAX). Try again later.', tooMany)
    const listener = this.#open.get(newest)
    // The stream's place is free from now on, although its client still reads the end.
    if (listener !== undefined) this.#remove(newest, listener)
    newest.end()
  }

  /**
   * Returns a function that releases the stream. Throws SurfaceError when the organisation has too many streams, and GatewayError when the database
   * cannot be reached.
   */
  async #held(stream: ListenStream, listener: Holder): Promise<() => void> {
    let release: (() => void) | null = null
    try {
      release = await this.#room.hold(listener.orgId)
    } finally {
      if (release === null) this.#remove(stream, listener)
    }
    if (release !== null) return release
    throw new SurfaceError(
      'refused',
      'This organisation has all the streams open that it may have (ORG_STREAMS). Close one, or listen to several resources on one stream.',
      { ...tooMany, scope: 'org', limit_name: 'ORG_STREAMS' },
    )
  }

  #add(stream: ListenStream, listener: Holder): void {
    this.#open.set(stream, listener)
    this.#byOwner.set(listener.owner, (this.#byOwner.get(listener.owner) ?? 0) + 1)
    const streams = this.#byFounder.get(listener.founder) ?? new Set()
    this.#byFounder.set(listener.founder, streams.add(stream))
  }

  #remove(stream: ListenStream, { owner, founder }: Holder): void {
    if (!this.#open.delete(stream)) return
    const left = (this.#byOwner.get(owner) ?? 1) - 1
    if (left === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, left)
    const streams = this.#byFounder.get(founder)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byFounder.delete(founder)
  }
}

const tooMany = { code: 'rate_limit_exceeded', status: 429 }

function errorResponse({ id }: ListenBody, { code, message, data }: SurfaceError): Response {
  return Response.json({ jsonrpc: '2.0', id: typeof id === 'string' || typeof id === 'number' ? id : null, error: { code, message, ...(data && { data }) } })
}
