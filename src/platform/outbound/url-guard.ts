/**
 * Decides which addresses a user may make the gateway connect to. A URL is checked when it is stored and again at every call. The look-up of the socket
 * itself checks every address to which the host resolves. So the checked address is the one that is used, and a name that later resolves to another address
 * cannot bypass the check. Decision 0125 gives the reasons.
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr, { type IPv6 } from 'ipaddr.js'
import { fail } from '../errors.ts'
import { makeNameLookup } from '../name-lookup.ts'

export interface UrlGuard {
  /**
   * Refuses a URL before it is stored or called: other schemes, http without permission, credentials, addresses that are not public. Throws
   * `bad_request`.
   */
  check(url: URL): void
  /** Returns whether OUTBOUND_ALLOW contains the URL's host with its port. */
  isAllowed(url: URL): boolean
  /**
   * Returns the look-up for sockets of this URL (http(s).Agent, undici). It fails with BlockedAddressError for an address that users may
   * not reach.
   */
  lookupFor(url: URL): LookupFunction
  /** The look-up for sockets to hosts that are not in OUTBOUND_ALLOW. */
  readonly lookup: LookupFunction
}

/** A name from a user leads to an address that users may not reach. */
export class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
  readonly code = 'BLOCKED_ADDRESS'
}

/**
 * Makes the guard from the `host:port` pairs of OUTBOUND_ALLOW. The system resolves the names in these pairs. All other names are resolved directly with
 * the name servers, which needs no thread of the pool. Throws an Error for an invalid entry. `stranger` replaces both look-ups in tests.
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
      // Only the permitted name itself may resolve to any address. An S3 client that puts the bucket before the name asks for another host, which is
      // checked.
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

/**
 * Names that belong to private networks everywhere: those of RFC 6761 and 6762, home.arpa (RFC 8375), and internal, which ICANN reserves for private use.
 * Names of cloud metadata servers end in `internal`.
 */
const inwardNames = ['localhost', 'local', 'internal', 'home.arpa', 'localdomain', 'intranet', 'lan']

function isInwardName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.+$/, '')
  return inwardNames.some(inward => name === inward || name.endsWith(`.${inward}`))
}

const permission = (url: URL): string => `Only the operator can permit it, by listing ${hostPort(url)} in OUTBOUND_ALLOW.`

/** Returns an entry of OUTBOUND_ALLOW as `host:port`, with the host as a parsed URL writes it. Null for an invalid entry. */
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

/** Refuses a name when any of its addresses is not public, because the socket may use any of them. */
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

/** Returns true for an address that users may not reach: every address that is not public unicast. IPv4 inside IPv6 is checked as IPv4. */
export function isBlockedAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return ipaddr.IPv4.parse(address).range() !== 'unicast'
    case 6:
      // The URL parser normalises the host and reads every form in the same way as the system.
      return isBlockedIpv6(ipaddr.IPv6.parse(new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1)))
    default:
      return true
  }
}

const ipv4Mapped = ipaddr.IPv6.parseCIDR('::ffff:0:0/96')
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/** Allows only the range of global unicast addresses, without the special ranges that the library knows (6to4, Teredo, documentation …). */
function isBlockedIpv6(address: IPv6): boolean {
  // In a network with DNS64, every IPv4 host has a NAT64 address, so the IPv4 address inside it is checked.
  if (address.match(ipv4Mapped) || address.match(nat64)) return isBlockedAddress(address.toByteArray().slice(12).join('.'))
  return !address.match(globalUnicast) || address.range() !== 'unicast'
}
