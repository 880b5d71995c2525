/**
 * The two ways out. `toProvider` dials what the operator configured, over keep-alive connections. `toUserUrl` dials what a user gave,
 * through the URL guard: at every dial the URL is checked and at every new connection each resolved address, no redirect is followed,
 * and private ranges are refused unless the operator's OUTBOUND_ALLOW names that host and port.
 */
import { lookup as dnsLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import type { CancelSignal } from '../loop/cancellation.ts'
import { dispatch, type OutboundReply } from './upstream-body.ts'
import { makeUrlGuard, type UrlGuard } from './url-guard.ts'

export interface OutboundRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer | string
  readonly signal?: CancelSignal
  /** Overrides of the client's timeouts. */
  readonly headersTimeoutMs?: number
  readonly bodyTimeoutMs?: number
}

export interface Outbound {
  toProvider(request: OutboundRequest): Promise<OutboundReply>
  /** Rejects with `bad_request` or BlockedAddressError, and sends nothing, where a user may not go. A redirect is a reply like any other. */
  toUserUrl(request: OutboundRequest): Promise<OutboundReply>
  readonly guard: UrlGuard
  close(): Promise<void>
}

export interface OutboundOptions {
  readonly connectTimeoutMs: number
  readonly firstByteTimeoutMs: number
  readonly streamIdleTimeoutMs: number
  /** `host:port` pairs of OUTBOUND_ALLOW. */
  readonly allow: readonly string[]
  /** Most connections to one provider origin. */
  readonly connectionsMax?: number
  /** Resolves the hosts of user-given URLs; default: the resolver of the machine. */
  readonly lookup?: LookupFunction
}

/** A request to an origin that has connections of its own. */
export interface OriginRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  /** Path with query, as it goes out. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal?: CancelSignal
}

export interface OriginClient {
  /** A redirect is a reply like any other. */
  send(request: OriginRequest): Promise<OutboundReply>
  /** Ends the connections once the replies that are under way are read. Nothing may be sent any more. */
  retire(): void
  /** Ends all connections immediately. */
  close(): void
}

export interface OriginOptions {
  /** Resolves the host, and refuses addresses that it must not lead to. */
  readonly lookup: LookupFunction
  readonly connectionsMax: number
  readonly connectTimeoutMs: number
  /** Longest silence before and inside a reply. */
  readonly silenceMs: number
}

/**
 * Longest time that a connection to an address that a user gave waits for its next call, in milliseconds. Such a server may ask for a
 * longer one in its `keep-alive` header, and would so decide how many sockets this process keeps.
 */
const userKeepAliveMaxMs = 10_000

/** Connections of its own to one origin that a user gave, `https://host:port`, so that what is asked of it has its own bound. */
export function openOrigin(origin: string, { lookup, connectionsMax, connectTimeoutMs, silenceMs }: OriginOptions): OriginClient {
  const connect = { timeout: connectTimeoutMs, noDelay: true, lookup }
  const timeouts = { headersTimeout: silenceMs, bodyTimeout: silenceMs, keepAliveMaxTimeout: userKeepAliveMaxMs }
  const agent = new Agent({ connect, connections: connectionsMax, pipelining: 1, ...timeouts })
  return {
    send: ({ signal, ...request }) => dispatch(agent, { origin, ...request }, signal),
    retire: () => void agent.close().catch(() => undefined),
    close: () => void agent.destroy().catch(() => undefined),
  }
}

/** Every slow stream takes a connection of its own for as long as it lasts. */
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
  // Two agents, so that a connection opened with permission is never used for a URL without it.
  const permitted = new Agent({ ...toUsers, connect: { ...connect, lookup: resolve } })
  const guarded = new Agent({ ...toUsers, connect: { ...connect, lookup: guard.lookup } })
  return {
    guard,
    toProvider: request => send(providers, request),
    async toUserUrl(request) {
      const url = new URL(request.url)
      guard.check(url)
      return send(guard.isAllowed(url) ? permitted : guarded, request)
    },
    async close() {
      await Promise.all([providers, permitted, guarded].map(agent => agent.destroy()))
    },
  }
}

/** Origin and path of the last few URLs: the hot path dials the same ones over and over. */
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

function send(dispatcher: Dispatcher, request: OutboundRequest): Promise<OutboundReply> {
  const { origin, path } = parts(request.url)
  const options: Dispatcher.DispatchOptions = { origin, path, method: request.method, headers: request.headers }
  if (request.body !== undefined) options.body = request.body
  if (request.headersTimeoutMs !== undefined) options.headersTimeout = request.headersTimeoutMs
  if (request.bodyTimeoutMs !== undefined) options.bodyTimeout = request.bodyTimeoutMs
  return dispatch(dispatcher, options, request.signal)
}
