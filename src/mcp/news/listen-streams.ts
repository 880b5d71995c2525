import type { Clock } from '../../platform/clock.ts'
import type { McpIdentity } from '../instructions.ts'
import { discoverServer } from '../server-discover.ts'
import { type Surface, SurfaceError } from '../surface.ts'
import type { ListenBody } from './listen-body.ts'
import { type Listener, ListenStream } from './listen-stream.ts'

/** Streams that one credential may have open in one process. A client needs one; the rest is room for reconnects. */
const perOwnerMax = 16
/** Streams that one process holds. */
const perProcessMax = 1_000

/** The open `subscriptions/listen` streams of this process. */
export class ListenStreams {
  readonly #clock: Clock
  readonly #identity: McpIdentity
  readonly #open = new Map<ListenStream, string>()
  #isClosed = false

  constructor(clock: Clock, identity: McpIdentity) {
    this.#clock = clock
    this.#identity = identity
  }

  /** Answers one POST; the stream stays open until the client goes, its credential ends, or the process does. */
  async serve(request: Request, body: ListenBody, surface: Surface, listener: Listener): Promise<Response> {
    try {
      if (surface.changes === undefined) throw new SurfaceError('badParams', 'There are no changes to listen to here.')
      this.#admit(listener.owner)
      const stream = new ListenStream(this.#clock, listener, () => discoverServer(surface, this.#identity))
      this.#open.set(stream, listener.owner)
      stream.onOver = () => this.#open.delete(stream)
      return await stream.open(request, body, surface.changes)
    } catch (thrown) {
      if (thrown instanceof SurfaceError) return errorResponse(body, thrown)
      throw thrown
    }
  }

  /** Ends all streams in good order, and takes no new ones. */
  endAll(): void {
    this.#isClosed = true
    for (const stream of this.#open.keys()) stream.end()
  }

  #admit(owner: string): void {
    const theirs = [...this.#open.values()].filter(of => of === owner).length
    if (this.#isClosed) throw new SurfaceError('refused', 'The gateway is restarting: listen again in a moment.', { code: 'shutting_down', status: 503 })
    if (theirs >= perOwnerMax)
      throw new SurfaceError('refused', `This credential has ${perOwnerMax} streams open. Close one, or listen to several resources on one stream.`, tooMany)
    if (this.#open.size >= perProcessMax) throw new SurfaceError('refused', 'This gateway has no room for another stream now. Try again later.', tooMany)
  }
}

const tooMany = { code: 'rate_limit_exceeded', status: 429 }

function errorResponse({ id }: ListenBody, { code, message, data }: SurfaceError): Response {
  return Response.json({ jsonrpc: '2.0', id: typeof id === 'string' || typeof id === 'number' ? id : null, error: { code, message, ...(data && { data }) } })
}
