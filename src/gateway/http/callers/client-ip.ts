import type { IncomingMessage } from 'node:http'
import { type AddressRanges, plainAddress } from '../../../platform/outbound/address-ranges.ts'

/** Hops of X-Forwarded-For that are looked at. Ours: nobody has so many proxies of their own in front. */
const hopsMax = 20

/**
 * Says from which address a request comes. The header X-Forwarded-For counts only when the connection comes from a trusted proxy;
 * then the client is the rightmost address in it that is no trusted proxy, because everything to the left of that one may be invented.
 * What is no address ends the search at the last good one. An IPv4 address that is written as IPv6 comes out as IPv4.
 * Decision 0113 says why.
 */
export function clientIpOf(trusted: AddressRanges): (request: Pick<IncomingMessage, 'socket' | 'headers'>) => string {
  return ({ socket, headers }) => {
    const peer = plainAddress(socket.remoteAddress ?? '') ?? ''
    const forwarded = headers['x-forwarded-for']
    if (forwarded === undefined || peer === '' || !trusted.has(peer)) return peer
    let client = peer
    for (const hop of String(forwarded).split(',').reverse().slice(0, hopsMax)) {
      const address = plainAddress(withoutPort(hop.trim()))
      if (address === null) return client
      client = address
      if (!trusted.has(address)) return client
    }
    return client
  }
}

/** Some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
