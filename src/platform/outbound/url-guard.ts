/**
 * Decides where a user may make the gateway connect to. A URL is checked when it is stored and again at every dial. Every address that its host resolves
 * to is checked inside the socket's own look-up, so the checked address is the one that is used, and a name that resolves to another address later
 * cannot bypass the check. Decision 0125 says why.
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr, { type IPv6 } from 'ipaddr.js'
import { fail } from '../errors.ts'
import { makeNameLookup } from '../name-lookup.ts'

export interface UrlGuard {
  /** Refuses a URL before anything is stored or dialed: other schemes, http without permission, credentials inside, addresses that are not public. Throws `bad_request`. */
  check(url: URL): void
  /** True when OUTBOUND_ALLOW names the URL's host with its port. */
  isAllowed(url: URL): boolean
  /** The look-up of sockets that are opened for this URL (http(s).Agent, undici). It fails with BlockedAddressError where a user may not go. */
  lookupFor(url: URL): LookupFunction
  /** The look-up of sockets for hosts that OUTBOUND_ALLOW does not name. */
  readonly lookup: LookupFunction
}

/** A user-given name that leads where a user may not go. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
  readonly code = 'BLOCKED_ADDRESS'
}

/**
 * The guard with the `host:port` pairs of OUTBOUND_ALLOW, whose names the system resolves; all other names are resolved by the name servers without the
 * threads of the process. Throws on an invalid entry. `stranger` replaces both in tests.
 */
export function makeUrlGuard(allow: readonly string[], stranger?: LookupFunction): UrlGuard {
  const resolve = stranger ?? dnsLookup
  const allowed = new Set(allow.map(allowedPair))
  const isAllowed = (url: URL): boolean => allowed.has(hostPort(url))
  const lookup = guardedLookup(stranger ?? makeNameLookup())
  return {
    isAllowed,
    lookup,
    lookupFor(url) {
      if (!isAllowed(url)) return lookup
      // Only the name that is permitted may lead anywhere: a client that puts something in front of it asks for another host.
      return (hostname, options, callback) => (hostname === url.hostname ? resolve : lookup)(hostname, options, callback)
    },
    check(url) {
      if (url.username !== '' || url.password !== '') throw fail('bad_request', { message: 'The URL must not carry a user name or password.' })
      if (url.protocol !== 'https:' && url.protocol !== 'http:') throw fail('bad_request', { message: 'The URL must begin with https://.' })
      if (isAllowed(url)) return
      const host = bare(url)
      if (isInwardName(host))
        throw fail('bad_request', {
          message: `The host of the URL is a name of this computer or of a network of its own, so it leads inward. ${permission(url)}`,
        })
      if (isIP(host) !== 0 && isBlockedAddress(host))
        throw fail('bad_request', { message: `The URL leads to a private, loopback or otherwise reserved address. ${permission(url)}` })
      if (url.protocol === 'http:') throw fail('bad_request', { message: `The URL must begin with https://. ${permission(url)}` })
    },
  }
}

/** Names that lead inward wherever they are resolved: RFC 6761 and 6762, home.arpa (RFC 8375), and internal, which ICANN keeps for private networks; cloud metadata is below it. */
const inwardNames = ['localhost', 'local', 'internal', 'home.arpa', 'localdomain', 'intranet', 'lan']

function isInwardName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.+$/, '')
  return inwardNames.some(inward => name === inward || name.endsWith(`.${inward}`))
}

const permission = (url: URL): string => `Only the operator can permit it, by listing ${hostPort(url)} in OUTBOUND_ALLOW.`

/** An entry of OUTBOUND_ALLOW as `host:port` in the form that a parsed URL gives hosts, or null when it is no such pair. */
export function parseAllowed(entry: string): string | null {
  if (!/^[^/@?#\\\s]+:\d{1,5}$/.test(entry) || !URL.canParse(`http://${entry}`)) return null
  return hostPort(new URL(`http://${entry}`))
}

function allowedPair(entry: string): string {
  const pair = parseAllowed(entry)
  if (pair === null) throw new Error(`OUTBOUND_ALLOW takes host:port pairs, not "${entry}"`)
  return pair
}

function hostPort(url: URL): string {
  return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`
}

const bare = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '')

/** Refuses a name when any of its addresses is not public: which of them the socket takes is not ours to say. */
function guardedLookup(resolve: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found, family) => {
      if (error) return callback(error, '', 0)
      const addresses: readonly LookupAddress[] = typeof found === 'string' ? [{ address: found, family: family ?? isIP(found) }] : found
      const [first] = addresses
      if (first === undefined || addresses.some(({ address }) => isBlockedAddress(address)))
        return callback(new BlockedAddressError(`${hostname} leads to an address that is not public`), '', 0)
      if (options.all) return callback(null, [...addresses])
      callback(null, first.address, first.family)
    })
  }
}

/** True for an address that a user-given URL must not reach: anything that is not public unicast, IPv4 inside IPv6 looked at as IPv4. */
export function isBlockedAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return ipaddr.IPv4.parse(address).range() !== 'unicast'
    case 6:
      // The URL parser writes the host again; it reads every form as the system does.
      return isBlockedIpv6(ipaddr.IPv6.parse(new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1)))
    default:
      return true
  }
}

const ipv4Mapped = ipaddr.IPv6.parseCIDR('::ffff:0:0/96')
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Only what is allotted for the internet is open; within it the table of the library knows the special parts (6to4, Teredo, documentation …). */
function isBlockedIpv6(address: IPv6): boolean {
  // A network with DNS64 gives every IPv4 host this kind of address, so the embedded IPv4 address counts.
  if (address.match(ipv4Mapped) || address.match(nat64)) return isBlockedAddress(address.toByteArray().slice(12).join('.'))
  return !address.match(globalUnicast) || address.range() !== 'unicast'
}
