/**
 * The open connections of clients. One that has not shown a credential counts for its address, one that has for the founder of the
 * organisation whose call came last. One that finds no place gets that of an idle connection of the holder that has the most. Where there
 * is none, it may still make one request: it gets a place when one became free meanwhile, otherwise the answer is the refusal, and the
 * connection ends. Decisions 0422 and 0465 say why.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../../platform/clock.ts'
import type { GatewayError } from '../../platform/errors.ts'
import { type AddressRanges, networkOf, plainAddress } from '../../platform/outbound/address-ranges.ts'
import { Shares } from '../../platform/shares.ts'
import { connectionPlaces, noPlace } from './places.ts'

/** For so long a connection that found no place may be silent. */
const placelessMs = 5_000
/** Places for those that found none, beside all others. */
const placelessPercent = 10
const placelessLeast = 64
/** Holders whose idle connections are looked for, the one with the most first; and the pause when there were none. */
const holdersLookedAt = 4
const pauseMs = 100

/** A head has to come within this time. */
const headersTimeoutMs = 20_000
/** A whole request has to come within this time. */
const requestTimeoutMs = 300_000
/** An idle connection is kept for so long: longer than load balancers keep theirs. */
const keepAliveMs = 65_000
/** How often these times are looked at. */
const checkEveryMs = 5_000

/** Bounds of the server in time, for `createServer`. */
export const serverTimes = {
  headersTimeout: headersTimeoutMs,
  requestTimeout: requestTimeoutMs,
  keepAliveTimeout: keepAliveMs,
  connectionsCheckingInterval: checkEveryMs,
}

/** The founder of an organisation, or the network of somebody who has shown no credential. */
type Holder = string

interface Connection {
  readonly socket: Socket
  /** Of the call that came last; null: none came yet. */
  response: ServerResponse | null
  /** Its place has gone to another one. */
  isEvicted: boolean
  /** Null: it has no place. */
  holder: Holder | null
  /** Who counts while nobody has shown a credential. */
  readonly network: string
  /** Of a trusted proxy: its connections carry calls of everybody. */
  readonly isProxy: boolean
}

/** Connections of trusted proxies together. They have no share, only the bound of all. */
const proxies = 'proxies'

export interface ConnectionsOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly trusted: AddressRanges
  readonly total: number
  /** What one founder or address may have of what the others leave free. */
  readonly percent: number
  /** Who founded an organisation. Left out: each organisation has a founder of its own. */
  readonly founderOf?: (orgId: number) => string
}

export class Connections {
  readonly shares: Shares<Holder>
  /** Connections that were closed without a word, because there were too many without a place. */
  dropped = 0
  readonly #options: ConnectionsOptions
  readonly #placeless: Shares<string>
  readonly #open = new WeakMap<Socket, Connection>()
  /** Connections with a place by holder, in the order in which they got it. */
  readonly #byHolder = new Map<Holder, Set<Connection>>()
  /** Nobody who holds so many finds an idle connection before then. */
  #inVain = { held: 0, untilMs: Number.NEGATIVE_INFINITY }

  constructor(options: ConnectionsOptions) {
    const { total, percent } = options
    this.#options = options
    this.shares = new Shares(total, percent)
    this.#placeless = new Shares(Math.max(placelessLeast, Math.ceil((total * placelessPercent) / 100)), percent)
  }

  /** How many are open. */
  get open(): number {
    return this.shares.held + this.#placeless.held
  }

  /** Counts the connections of a server from now on. */
  watch(server: Server): void {
    server.maxConnections = this.shares.total + this.#placeless.total
    server.on('drop', () => {
      this.dropped++
    })
    server.on('connection', socket => this.#accept(socket))
  }

  /** At the begin of a request: without a place its connection ends behind the answer. */
  begun(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#open.get(request.socket)
    if (connection === undefined) return
    connection.response = response
    if (connection.holder === null) response.setHeader('connection', 'close')
  }

  /** The connection of a call belongs to the founder of that organisation from now on; null: to nobody in particular. The refusal when there is no place. */
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
   * Closes an idle connection and hands its place over: of the holder that has the most, which must have more than the newcomer will have, and
   * when all places are taken otherwise one of the newcomer's own. False: there is none.
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

  /** An idle connection of a holder that has more than so many, the one with the most first. */
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

/** The oldest connection on which no call is under way. */
function idleOf(held: ReadonlySet<Connection> | undefined): Connection | null {
  for (const connection of held ?? []) if (connection.response === null || connection.response.writableFinished) return connection
  return null
}

/** The answers to a request that cannot be read. */
const unreadable: Readonly<Record<string, readonly [status: string, code: string, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'request_timeout', 'The request did not arrive in time. Send it again over a faster connection.'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'bad_request', 'The headers are longer than the 16 KiB that this server takes.'],
}

/** Answers what is no request, or did not come in time, and ends the connection. In the middle of a reply it only closes the connection. */
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

/** Whether a response on the socket has sent its head. Node itself asks this field before it answers what it cannot read. */
function isReplyUnderWay(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage')
  return response instanceof ServerResponse && response.headersSent
}
