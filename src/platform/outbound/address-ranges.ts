import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ReturnType<typeof ipaddr.process>

/** A set of IP addresses, made of single addresses and CIDR ranges. */
export interface AddressRanges {
  has(address: string): boolean
}

/**
 * Returns the address in one spelling: without a zone, and IPv4 in IPv6 form as IPv4. Null for a text that is not an IP address. Forms such
 * as `0x7f.1` are not accepted.
 */
export function plainAddress(text: string): string | null {
  return addressOf(text)?.toString() ?? null
}

/**
 * Returns the key under which requests from an address are counted. It is the address itself, or the /64 of an IPv6 address, because one customer or
 * machine normally has a whole /64. Null for a text that is not an IP address.
 */
export function networkOf(text: string): string | null {
  const address = addressOf(text)
  if (address === null) return null
  if (!(address instanceof ipaddr.IPv6)) return address.toString()
  return `${address.parts
    .slice(0, 4)
    .map(part => part.toString(16))
    .join(':')}::/64`
}

/** Reads addresses and CIDR ranges. `wrong` is the first invalid item. When there is one, the set is empty. */
export function addressRangesOf(items: readonly string[]): { ranges: AddressRanges; wrong: string | null } {
  const ranges: (readonly [Address, number])[] = []
  for (const item of items) {
    const range = rangeOf(item)
    if (range === null) return { ranges: { has: () => false }, wrong: item }
    ranges.push(range)
  }
  return {
    wrong: null,
    ranges: {
      has(text) {
        const address = addressOf(text)
        return address !== null && ranges.some(([network, bits]) => network.kind() === address.kind() && matches(address, network, bits))
      },
    },
  }
}

function addressOf(text: string): Address | null {
  const bare = text.split('%')[0] ?? ''
  return isIP(bare) === 0 ? null : ipaddr.process(bare)
}

/** Returns the network and its length of `10.0.0.0/8`, `fd00::/8` or one address. Null for an invalid item. */
function rangeOf(item: string): readonly [Address, number] | null {
  const [text = '', length, ...rest] = item.split('/')
  const address = addressOf(text)
  if (address === null || rest.length > 0) return null
  const bitsMax = address.kind() === 'ipv4' ? 32 : 128
  if (length === undefined) return [address, bitsMax]
  const bits = Number(length)
  return /^\d{1,3}$/.test(length) && bits <= bitsMax ? [address, bits] : null
}

function matches(address: Address, network: Address, bits: number): boolean {
  if (address instanceof ipaddr.IPv6 && network instanceof ipaddr.IPv6) return address.match(network, bits)
  return address instanceof ipaddr.IPv4 && network instanceof ipaddr.IPv4 && address.match(network, bits)
}
