/**
 * The two ways out. `toProvider` dials what the operator configured, over keep-alive connections. `toUserUrl` and `UrlGuard` dial
 * what a user gave: every resolved address is checked inside `connect.lookup`, so a name that resolves anew cannot slip past, no
 * redirect is followed, and private ranges are refused unless the operator's OUTBOUND_ALLOW names that host and port.
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, type Dispatcher } from 'undici'
import type { CancelSignal } from './cancellation.ts'
import { fail } from './errors.ts'
import { dispatch, type OutboundReply } from './upstream-body.ts'

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

export interface UrlGuard {
  /** For http(s).Agent and undici: resolves and refuses addresses that a user may not reach. */
  readonly lookup: LookupFunction
  /** Refuses a URL before it is stored: http without permission, credentials inside, literal private addresses. Throws `bad_request`. */
  check(url: URL): void
}

export interface Outbound {
  toProvider(request: OutboundRequest): Promise<OutboundReply>
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
}

/** Every slow stream takes a connection of its own for as long as it lasts. */
const connectionsDefaultMax = 8192

/** A user-given name or address that leads where a user may not go. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
  readonly code = 'BLOCKED_ADDRESS'
}

/** True for an address that a user-given URL must not reach: anything that is not plain public unicast, IPv4-mapped forms unwrapped. */
export function isBlockedAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return true
  return ipaddr.process(address).range() !== 'unicast'
}

export function createOutbound(options: OutboundOptions): Outbound {
  const timeouts = {
    headersTimeout: options.firstByteTimeoutMs,
    bodyTimeout: options.streamIdleTimeoutMs,
    connections: options.connectionsMax ?? connectionsDefaultMax,
    pipelining: 1,
  }
  const providers = new Agent({ ...timeouts, connect: { timeout: options.connectTimeoutMs, noDelay: true }, keepAliveTimeout: 30_000 })
  const guard = makeGuard(new Set(options.allow))
  const users = new Map<string, Agent>()
  const agentFor = (url: URL): Agent => {
    // One agent per origin that OUTBOUND_ALLOW names, one for all others: the lookup has to know the port it is asked for.
    const origin = guard.isAllowed(url) ? hostPort(url) : ''
    let agent = users.get(origin)
    if (!agent) {
      agent = new Agent({ ...timeouts, connect: { timeout: options.connectTimeoutMs, ...(origin === '' ? { lookup: guardedLookup } : {}) } })
      users.set(origin, agent)
    }
    return agent
  }
  return {
    guard,
    toProvider: request => send(providers, request),
    toUserUrl: request => {
      const url = new URL(request.url)
      guard.check(url)
      return send(agentFor(url), request)
    },
    async close() {
      await Promise.all([providers.destroy(), ...[...users.values()].map(agent => agent.destroy())])
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

function hostPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
}

/** The guard over a set of permitted host:port pairs. `lookupFor` gives the lookup of one target. */
function makeGuard(allow: ReadonlySet<string>): UrlGuard & { isAllowed(url: URL): boolean } {
  const hosts = new Set([...allow].map(pair => pair.replace(/:\d+$/, '')))
  const isAllowed = (url: URL): boolean => allow.has(hostPort(url))
  return {
    isAllowed,
    // A socket that is opened for a permitted host may go anywhere that name leads; `check` has compared the port.
    lookup: (hostname, lookupOptions, callback) =>
      hosts.has(hostname) ? dnsLookup(hostname, lookupOptions, callback) : guardedLookup(hostname, lookupOptions, callback),
    check(url) {
      if (url.username !== '' || url.password !== '') throw fail('bad_request', { message: 'The URL must not carry a user name or password.' })
      if (url.protocol !== 'https:' && url.protocol !== 'http:') throw fail('bad_request', { message: 'The URL must begin with https://.' })
      if (isAllowed(url)) return
      if (url.protocol === 'http:')
        throw fail('bad_request', {
          message: `The URL must begin with https://. Plain http is accepted only for hosts that the operator lists in OUTBOUND_ALLOW (here: ${hostPort(url)}).`,
        })
      const host = url.hostname.replace(/^\[|\]$/g, '')
      if (isIP(host) !== 0 && isBlockedAddress(host))
        throw fail('bad_request', { message: 'The URL leads to a private, loopback or otherwise reserved address.' })
    },
  }
}

const guardedLookup: LookupFunction = (hostname, lookupOptions, callback) => {
  dnsLookup(hostname, { ...lookupOptions, all: true }, (error, addresses: LookupAddress[]) => {
    if (error) return callback(error, '', 0)
    const blocked = addresses.find(found => isBlockedAddress(found.address))
    if (blocked !== undefined || addresses.length === 0) return callback(new BlockedAddressError(`${hostname} leads to an address that is not public`), '', 0)
    if (lookupOptions.all) return callback(null, addresses)
    const first = addresses[0]
    callback(null, first?.address ?? '', first?.family ?? 4)
  })
}
