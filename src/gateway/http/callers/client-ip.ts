import type { IncomingMessage } from 'node:http'
import { type AddressRanges, plainAddress } from '../../../platform/outbound/address-ranges.ts'

/** Maximum number of hops of X-Forwarded-For that are read. The project chose it; no installation has this many proxies of its own. */
const hopsMax = 20

/**
 * Returns a function that finds the address of a client. X-Forwarded-For counts only when the connection comes from a trusted proxy. The client is then the
 * rightmost address that does not belong to a trusted proxy, because a client can invent every entry to the left. An invalid address ends the search at the
 * last valid address. An IPv4 address in IPv6 notation is returned as IPv4. Decision 0113 says why.
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

/** Removes the port, because some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}
