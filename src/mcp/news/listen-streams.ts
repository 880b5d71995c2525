import type { Clock } from '../../platform/clock.ts'
import { GatewayError } from '../../platform/errors.ts'
import type { McpIdentity } from '../documents/instructions.ts'
import { discoverServer } from '../documents/server-discover.ts'
import { type Surface, SurfaceError } from '../surface.ts'
import type { ListenBody } from './listen-body.ts'
import { type Listener, ListenStream } from './listen-stream.ts'

/** Streams that one credential may have open in one process. A client needs one; the rest is room for reconnects. */
const perOwnerMax = 16

/** Holds one of the streams that an organisation may have open over all processes; null when all of them are open. */
export type HoldStream = (orgId: number) => Promise<(() => void) | null>

/** How many there may be. */
export interface StreamRoom {
  readonly hold: HoldStream
  /** Streams that one process holds (setting CHANGE_STREAMS_MAX). */
  readonly max: number
}

/**
 * The open `subscriptions/listen` streams of this process. While there is room every request gets one. In a full process a new stream replaces one of
 * the organisation that has the most, so that no organisation keeps another out.
 */
export class ListenStreams {
  readonly #clock: Clock
  readonly #identity: McpIdentity
  readonly #room: StreamRoom
  readonly #open = new Map<ListenStream, Listener>()
  readonly #byOwner = new Map<string, number>()
  readonly #byOrg = new Map<number, Set<ListenStream>>()
  #isClosed = false

  constructor(clock: Clock, identity: McpIdentity, room: StreamRoom) {
    this.#clock = clock
    this.#identity = identity
    this.#room = room
  }

  /** Answers one POST; the stream stays open until the client goes, its credential ends, its place is needed, or the process ends. */
  async serve(request: Request, body: ListenBody, surface: Surface, listener: Listener): Promise<Response> {
    try {
      if (surface.changes === undefined) throw new SurfaceError('badParams', 'There are no changes to listen to here.')
      this.#admit(listener)
      const stream = new ListenStream(this.#clock, listener, () => discoverServer(surface, this.#identity))
      // This count comes before the first await: streams that are about to open count too.
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

  /** Ends all streams in good order, and accepts no new ones. */
  endAll(): void {
    this.#isClosed = true
    for (const stream of this.#open.keys()) stream.end()
  }

  #admit({ owner, orgId }: Listener): void {
    if (this.#isClosed) throw new SurfaceError('refused', 'The gateway is restarting: listen again in a moment.', { code: 'shutting_down', status: 503 })
    if ((this.#byOwner.get(owner) ?? 0) >= perOwnerMax)
      throw new SurfaceError('refused', `This credential has ${perOwnerMax} streams open. Close one, or listen to several resources on one stream.`, tooMany)
    if (this.#open.size >= this.#room.max) this.#makeRoom(orgId)
  }

  /** Ends the newest stream of the organisation that has the most; that organisation must have more streams than the newcomer's will have. */
  #makeRoom(orgId: number): void {
    const own = this.#byOrg.get(orgId)?.size ?? 0
    let most: ReadonlySet<ListenStream> = new Set()
    for (const streams of this.#byOrg.values()) if (streams.size > most.size) most = streams
    const newest = [...most].at(-1)
    if (newest === undefined || most.size <= own + 1)
      throw new SurfaceError('refused', 'This gateway has as many streams of changes open as it takes (CHANGE_STREAMS_MAX). Try again later.', tooMany)
    const listener = this.#open.get(newest)
    // Its place is free from now on, though its client still reads the end.
    if (listener !== undefined) this.#remove(newest, listener)
    newest.end()
  }

  /** Throws SurfaceError, and GatewayError when the database cannot be asked. */
  async #held(stream: ListenStream, listener: Listener): Promise<() => void> {
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

  #add(stream: ListenStream, listener: Listener): void {
    this.#open.set(stream, listener)
    this.#byOwner.set(listener.owner, (this.#byOwner.get(listener.owner) ?? 0) + 1)
    const streams = this.#byOrg.get(listener.orgId) ?? new Set()
    this.#byOrg.set(listener.orgId, streams.add(stream))
  }

  #remove(stream: ListenStream, { owner, orgId }: Listener): void {
    if (!this.#open.delete(stream)) return
    const left = (this.#byOwner.get(owner) ?? 1) - 1
    if (left === 0) this.#byOwner.delete(owner)
    else this.#byOwner.set(owner, left)
    const streams = this.#byOrg.get(orgId)
    streams?.delete(stream)
    if (streams?.size === 0) this.#byOrg.delete(orgId)
  }
}

const tooMany = { code: 'rate_limit_exceeded', status: 429 }

function errorResponse({ id }: ListenBody, { code, message, data }: SurfaceError): Response {
  return Response.json({ jsonrpc: '2.0', id: typeof id === 'string' || typeof id === 'number' ? id : null, error: { code, message, ...(data && { data }) } })
}
