/**
 * Limits the open connections of clients. A connection counts for its holder: the founder of the organisation that made its last call, or the client's
 * address while it has shown no credential. When all places are taken, a new connection takes the place of an idle connection of the holder with the most
 * connections. When no such connection exists, the client may still make one request. That request is served if a place has become free by then, and is
 * otherwise refused. The connection then ends. Decisions 0422 and 0465 say why.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import type { GatewayError } from '../../platform/errors.ts'
import { type AddressRanges, networkOf, plainAddress } from '../../platform/outbound/address-ranges.ts'
import { Shares } from '../../platform/shares.ts'
import { connectionPlaces, noPlace } from './places.ts'

/** How long a connection without a place may be silent. */
const placelessMs = 5_000
/** Maximum number of connections without a place, in percent of all places. It is at least `placelessLeast`. */
const placelessPercent = 10
const placelessLeast = 64
/**
 * A search for an idle connection looks at this many holders, those with the most connections first. The next constant is the pause after a search that
 * found none.
 */
const holdersLookedAt = 4
const pauseMs = 100

/** Maximum time for the head of a request. */
const headersTimeoutMs = 20_000
/** Maximum time for a whole request. */
const requestTimeoutMs = 300_000
/** How long an idle connection is kept. It is longer than load balancers keep theirs. */
const keepAliveMs = 65_000
/** How often the server checks these times. */
const checkEveryMs = 5_000

/** Time limits of the server, for `createServer`. */
export const serverTimes = {
  headersTimeout: headersTimeoutMs,
  requestTimeout: requestTimeoutMs,
  keepAliveTimeout: keepAliveMs,
  connectionsCheckingInterval: checkEveryMs,
}

/** The founder of an organisation, or the network of a client without a credential. */
type Holder = string

interface Connection {
  readonly socket: Socket
  /** The response of the last call; null before the first call. */
  response: ServerResponse | null
  /** True when another connection has taken the place of this one. */
  isEvicted: boolean
  /** Null when the connection has no place. */
  holder: Holder | null
  /** The network of the client, which is the holder while the connection has shown no credential. */
  readonly network: string
  /** True for a connection of a trusted proxy, which carries calls of many clients. */
  readonly isProxy: boolean
}

/** The holder of all connections of trusted proxies. Only the total number of places limits it. */
const proxies = 'proxies'

export interface ConnectionsOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly trusted: AddressRanges
  readonly total: number
  /** One founder or address may use at most this percentage of the places that others leave free. */
  readonly percent: number
  /** Returns the founder of an organisation. Without it, each organisation has a founder of its own. */
  readonly founderOf?: (orgId: number) => string
}

export class Connections {
  readonly shares: Shares<Holder>
  /** Number of connections that were closed without a reply, because too many had no place. */
  dropped = 0
  readonly #options: ConnectionsOptions
  readonly #placeless: Shares<string>
  readonly #open = new WeakMap<Socket, Connection>()
  /** The connections that have a place, by holder and in the order in which they got their place. */
  readonly #byHolder = new Map<Holder, Set<Connection>>()
  /** The last search that found no idle connection. Until `untilMs`, a holder with at least `held` connections causes no new search. */
  #inVain = { held: 0, untilMs: Number.NEGATIVE_INFINITY }

  constructor(options: ConnectionsOptions) {
    const { total, percent } = options
    this.#options = options
    this.shares = new Shares(total, percent)
    this.#placeless = new Shares(Math.max(placelessLeast, Math.ceil((total * placelessPercent) / 100)), percent)
  }

  /** Number of open connections. */
  get open(): number {
    return this.shares.held + this.#placeless.held
  }

  /** Starts counting the connections of a server. */
  watch(server: Server): void {
    server.maxConnections = this.shares.total + this.#placeless.total
    server.on('drop', () => {
      this.dropped++
    })
    server.on('connection', socket => this.#accept(socket))
  }

  /** Notes the start of a request. A connection without a place ends after the reply. */
  begun(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#open.get(request.socket)
    if (connection === undefined) return
    connection.response = response
    if (connection.holder === null) response.setHeader('connection', 'close')
  }

  /**
   * Assigns the connection of a call to the founder of the organisation and returns null. With `orgId` null, a connection without a place is assigned
   * to its network. Returns the refusal when there is no place.
   */
  admit(request: IncomingMessage, orgId: number | null): GatewayError | null {
    const connection = this.#open.get(request.socket)
    if (connection === undefined || connection.isProxy) return null
    const { holder, network } = connection
    if (holder !== null && orgId === null) return null
    const to = orgId === null ? network : (this.#options.founderOf ?? String)(orgId)
    if (holder === to) return null
    const why = holder === null ? this.shares.take(to) : this.shares.move(holder, to)
    if (why !== null) {
      if (!this.#takeIdlePlace(to)) return noPlace(connectionPlaces, why, { connection: 'close' })
      if (holder !== null) this.shares.give(holder)
    }
    this.#leave(connection)
    this.#enter(connection, to)
    if (holder !== null) return null
    this.#placeless.give(network)
    request.socket.setTimeout(0)
    return null
  }

  #accept(socket: Socket): void {
    const { trusted } = this.#options
    const peer = plainAddress(socket.remoteAddress ?? '') ?? ''
    const isProxy = peer !== '' && trusted.has(peer)
    const network = isProxy ? proxies : (networkOf(peer) ?? 'unknown')
    const isTaken = isProxy ? this.shares.takeUnshared(network) : this.shares.take(network) === null
    const isPlaced = isTaken || this.#takeIdlePlace(network)
    if (!isPlaced && this.#placeless.take(network) !== null) {
      this.dropped++
      socket.destroy()
      return
    }
    const connection: Connection = { socket, response: null, isEvicted: false, holder: null, network, isProxy }
    this.#open.set(socket, connection)
    if (isPlaced) this.#enter(connection, network)
    else socket.setTimeout(placelessMs)
    socket.once('close', () => {
      if (connection.isEvicted) return
      if (connection.holder === null) this.#placeless.give(network)
      else this.shares.give(connection.holder)
      this.#leave(connection)
    })
  }

  #enter(connection: Connection, holder: Holder): void {
    connection.holder = holder
    const held = this.#byHolder.get(holder) ?? new Set()
    this.#byHolder.set(holder, held.add(connection))
  }

  #leave(connection: Connection): void {
    if (connection.holder === null) return
    const held = this.#byHolder.get(connection.holder)
    held?.delete(connection)
    if (held?.size === 0) this.#byHolder.delete(connection.holder)
  }

  /**
   * Closes an idle connection and moves its place to the newcomer. It chooses a holder that has more connections than the newcomer will have, and the most
   * of all. If there is no such holder and all places are taken, it closes an idle connection of the newcomer itself. Returns false when no idle connection
   * was found.
   */
  #takeIdlePlace(to: Holder): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    const own = this.#byHolder.get(to)?.size ?? 0
    if (own >= this.#inVain.held && nowMs < this.#inVain.untilMs) return false
    const idle = this.#idleOfOthers(own + 1) ?? (this.shares.held >= this.shares.total ? idleOf(this.#byHolder.get(to)) : null)
    if (idle === null || idle.holder === null) {
      this.#inVain = { held: own, untilMs: nowMs + pauseMs }
      return false
    }
    this.#leave(idle)
    this.shares.hand(idle.holder, to)
    idle.isEvicted = true
    idle.socket.destroy()
    return true
  }

  /** Returns an idle connection of a holder with more than `moreThan` connections. Holders with the most connections come first. */
  #idleOfOthers(moreThan: number): Connection | null {
    const seen = new Set<Set<Connection>>()
    while (seen.size < holdersLookedAt) {
      let most: Set<Connection> | null = null
      for (const held of this.#byHolder.values()) if (held.size > (most?.size ?? moreThan) && !seen.has(held)) most = held
      if (most === null) return null
      const idle = idleOf(most)
      if (idle !== null) return idle
      seen.add(most)
    }
    return null
  }
}

/** Returns the oldest connection without a running call. */
function idleOf(held: ReadonlySet<Connection> | undefined): Connection | null {
  for (const connection of held ?? []) if (connection.response === null || connection.response.writableFinished) return connection
  return null
}

/** The replies to requests that cannot be read, by error code of Node.js. */
const unreadable: Readonly<Record<string, readonly [status: string, code: string, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'The request did not arrive in time. Send it again over a faster connection.'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'bad_request', 'The headers are longer than the 16 KiB that this server takes.'],
}

/** Replies to data that is not HTTP or did not arrive in time, and ends the connection. In the middle of a reply it only closes the connection. */
export function refuseUnread(error: Error, socket: Duplex): void {
  if (!socket.writable) return
  if (isReplyUnderWay(socket)) {
    socket.destroy()
    return
  }
  const known = 'code' in error && typeof error.code === 'string' ? unreadable[error.code] : undefined
  const [status, code, message] = known ?? ['400 Bad Request', 'bad_request', 'Not HTTP.']
  const text = JSON.stringify({ error: { message, type: 'invalid_request_error', code } })
  const head = `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`
  socket.end(head + text)
}

/** Returns true when a response on the socket has sent its head. Node.js itself reads this field before it replies to data that it cannot read. */
function isReplyUnderWay(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage')
  return response instanceof ServerResponse && response.headersSent
}
