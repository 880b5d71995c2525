/**
 * The two HTTP clients. `toProvider` calls addresses that the operator configured, over keep-alive connections. `toUserUrl` calls addresses
 * that users gave, through the URL guard. The guard checks the URL at every call, and each resolved address at every new connection. It
 * follows no redirect and refuses private ranges, unless OUTBOUND_ALLOW names that host and port.
 */
import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import { systemClock } from '../clock.ts'
import type { CancelSignal } from '../loop/cancellation.ts'
import { StreamTurns } from '../loop/stream-turns.ts'
import { dispatch, type OutboundReply, type ReadingRules } from './upstream-body.ts'
import { makeUrlGuard, type UrlGuard } from './url-guard.ts'

export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | string | Readable | undefined
  readonly signal?: CancelSignal
  /** Override the timeouts of the client. */
  readonly headersTimeoutMs?: number | undefined
  readonly bodyTimeoutMs?: number
}

export interface Outbound {
  toProvider(request: OutboundRequest): Promise<OutboundReply>
  /**
   * Rejects with `bad_request` or BlockedAddressError, and sends nothing, for an address that users may not reach. A redirect is returned
   * as a normal reply.
   */
  toUserUrl(request: OutboundRequest): Promise<OutboundReply>
  readonly guard: UrlGuard
  close(): Promise<void>
}

export interface OutboundOptions {
  readonly connectTimeoutMs: number
  readonly firstByteTimeoutMs: number
  readonly streamIdleTimeoutMs: number
  /** The `host:port` pairs of OUTBOUND_ALLOW. */
  readonly allow: readonly string[]
  /** Maximum number of connections to one provider origin. */
  readonly connectionsMax?: number
  /** Resolves the hosts of URLs from users. Default: the resolver of the machine. */
  readonly lookup?: LookupFunction
  /** Divides the event loop between streams that bring much. Default: turns of these clients alone. */
  readonly turns?: StreamTurns
}

/** A request to an origin with connections of its own. */
export interface OriginRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  /** Path with query, exactly as it is sent. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: CancelSignal
}

export interface OriginClient {
  /** Sends a request. A redirect is returned as a normal reply. */
  send(request: OriginRequest): Promise<OutboundReply>
  /** Closes the connections after the current replies are read. No request may be sent any more. */
  retire(): void
  /** Closes all connections immediately. */
  close(): void
}

export interface OriginOptions {
  /** Resolves the host, and refuses addresses that it must not lead to. */
  readonly lookup: LookupFunction
  readonly connectionsMax: number
  readonly connectTimeoutMs: number
  /** Longest silence before and during a reply, in milliseconds. */
  readonly silenceMs: number
}

/**
 * Longest time that an idle connection to a user's address stays open, in milliseconds. Without this limit, such a server could ask for a
 * longer time in its `keep-alive` header, and so decide how many sockets this process keeps.
 */
const userKeepAliveMaxMs = 10_000

/**
 * Opens connections to one origin that a user gave, `https://host:port`. They are separate from all others, so that requests to this origin have their own
 * limit.
 */
export function openOrigin(origin: string, { lookup, connectionsMax, connectTimeoutMs, silenceMs }: OriginOptions): OriginClient {
  const connect = { timeout: connectTimeoutMs, noDelay: true, lookup }
  const timeouts = { headersTimeout: silenceMs, bodyTimeout: silenceMs, keepAliveMaxTimeout: userKeepAliveMaxMs }
  const agent = new Agent({ connect, connections: connectionsMax, pipelining: 1, ...timeouts })
  const rules = { refusesFine: true, headersTimeoutMs: silenceMs, turns: new StreamTurns(systemClock) }
  return {
    send: ({ signal, ...request }) => dispatch(agent, { origin, ...request }, signal, rules),
    retire: () => void agent.close().catch(() => undefined),
    close: () => void agent.destroy().catch(() => undefined),
  }
}

/** Default maximum number of connections. It is high, because every stream uses a connection as long as it lasts. */
const connectionsDefaultMax = 8192

export function createOutbound(options: OutboundOptions): Outbound {
  const timeouts = {
    headersTimeout: options.firstByteTimeoutMs,
    bodyTimeout: options.streamIdleTimeoutMs,
    connections: options.connectionsMax ?? connectionsDefaultMax,
    pipelining: 1,
  }
  const providers = new Agent({ ...timeouts, connect: { timeout: options.connectTimeoutMs, noDelay: true }, keepAliveTimeout: 30_000 })
  const resolve = options.lookup ?? dnsLookup
  const guard = makeUrlGuard(options.allow, options.lookup)
  const connect = { timeout: options.connectTimeoutMs, noDelay: true }
  const toUsers = { ...timeouts, keepAliveMaxTimeout: userKeepAliveMaxMs }
  // There are two agents. A connection to an address that OUTBOUND_ALLOW permits is never used for a URL that it does not permit.
  const permitted = new Agent({ ...toUsers, connect: { ...connect, lookup: resolve } })
  const guarded = new Agent({ ...toUsers, connect: { ...connect, lookup: guard.lookup } })
  const turns = options.turns ?? new StreamTurns(systemClock)
  const ofProviders = { refusesFine: false, headersTimeoutMs: options.firstByteTimeoutMs, turns }
  const ofUsers = { ...ofProviders, refusesFine: true }
  return {
    guard,
    toProvider: request => send(providers, request, ofProviders),
    async toUserUrl(request) {
      const url = new URL(request.url)
      guard.check(url)
      return send(guard.isAllowed(url) ? permitted : guarded, request, ofUsers)
    },
    async close() {
      await Promise.all([providers, permitted, guarded].map(agent => agent.destroy()))
    },
  }
}

/** Caches the origin and path of recent URLs, because the hot path calls the same URLs again and again. */
const parsed = new Map<string, { origin: string; path: string }>()

function parts(url: string): { origin: string; path: string } {
  let found = parsed.get(url)
  if (!found) {
    const made = new URL(url)
    found = { origin: made.origin, path: made.pathname + made.search }
    if (parsed.size >= 1000) parsed.clear()
    parsed.set(url, found)
  }
  return found
}

function send(dispatcher: Dispatcher, request: OutboundRequest, rules: ReadingRules): Promise<OutboundReply> {
  const { origin, path } = parts(request.url)
  const options: Dispatcher.DispatchOptions = { origin, path, method: request.method, headers: request.headers }
  if (request.body !== undefined) options.body = request.body
  if (request.headersTimeoutMs !== undefined) options.headersTimeout = request.headersTimeoutMs
  if (request.bodyTimeoutMs !== undefined) options.bodyTimeout = request.bodyTimeoutMs
  return dispatch(dispatcher, options, request.signal, rules)
}
