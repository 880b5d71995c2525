import { lookup } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/platform/config.ts'
import { BlockedAddressError, isBlockedAddress, makeUrlGuard } from '../../src/platform/outbound/url-guard.ts'
import { propertyRuns } from '../harness/property-runs.ts'

/** The special ranges, copied from the registries of special addresses. The guard has its own table. */
const special = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  special.addSubnet(network, bits, 'ipv4')

type Octets = readonly [number, number, number, number]
const octet = fc.integer({ min: 0, max: 255 })
const anyIpv4: fc.Arbitrary<Octets> = fc.tuple(octet, octet, octet, octet)
const privateIpv4: fc.Arbitrary<Octets> = fc
  .tuple(fc.constantFrom([127], [10], [192, 168], [169, 254], [172, 16], [172, 31], [100, 64], [0], [224], [255]), octet, octet, octet, octet)
  .map(([head, ...rest]) => [...head, ...rest].slice(0, 4) as unknown as Octets)

const numberOf = ([a, b, c, d]: Octets): number => ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
const pair = (high: number, low: number): string => ((high << 8) | low).toString(16)
const tail = ([a, b, c, d]: Octets): string => `${pair(a, b)}:${pair(c, d)}`

/** Ways to write one IPv4 address as a host of at most four parts. Only some programs accept some of them. */
const notations: readonly ((at: Octets) => string)[] = [
  at => at.join('.'),
  at => `${at.join('.')}.`,
  at => String(numberOf(at)),
  at => `0x${numberOf(at).toString(16)}`,
  at => `0${numberOf(at).toString(8)}`,
  at => at.map(part => `0x${part.toString(16)}`).join('.'),
  at => at.map(part => `0${part.toString(8)}`).join('.'),
  ([a, b, c, d]) => `${a}.${b}.${(c << 8) | d}`,
  ([a, b, c, d]) => `${a}.${(b << 16) | (c << 8) | d}`,
  ([a, b, c, d]) => `0x${a.toString(16)}.0${((b << 16) | (c << 8) | d).toString(8)}`,
  at => at.join('%2e'),
  at => [...at.join('.')].map(char => `%${char.charCodeAt(0).toString(16)}`).join(''),
  at => [...at.join('.')].map(char => (char === '.' ? '。' : String.fromCodePoint(0xff10 + Number(char)))).join(''),
]
const ipv6Notations: readonly ((at: Octets) => string)[] = [
  at => `::ffff:${at.join('.')}`,
  at => `::ffff:${tail(at)}`,
  at => `0:0:0:0:0:ffff:${tail(at)}`,
  at => `::${at.join('.')}`,
  at => `::${tail(at)}`,
  at => `::ffff:0:${at.join('.')}`,
  at => `64:ff9b::${at.join('.')}`,
  at => `64:ff9b::${tail(at)}`,
  at => `64:ff9b:1::${tail(at)}`,
  at => `2002:${tail(at)}::1`,
  at => `2001:0:${tail(at)}::1`,
]

const guard = makeUrlGuard([])
const refuses = (url: string): boolean => {
  if (!URL.canParse(url)) return true
  try {
    guard.check(new URL(url))
    return false
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad_request' })
    return true
  }
}

describe('addresses', () => {
  test('every IPv4 address of a special range is blocked, and the addresses next to these ranges are allowed', () => {
    fc.assert(
      fc.property(anyIpv4, at => {
        const text = at.join('.')
        if (special.check(text, 'ipv4')) expect(isBlockedAddress(text), text).toBe(true)
      }),
      { numRuns: propertyRuns(3000) },
    )
    for (const open of ['1.1.1.1', '93.184.216.34', '100.63.255.255', '100.128.0.0', '172.15.0.1', '172.32.0.1', '169.253.1.1', '223.255.255.254', '11.0.0.1'])
      expect(isBlockedAddress(open), open).toBe(false)
  })

  test('a blocked IPv4 address is blocked in every IPv6 form', () => {
    fc.assert(
      fc.property(privateIpv4, fc.constantFrom(...ipv6Notations), (at, write) => {
        const text = write(at)
        expect(isIP(text), text).toBe(6)
        expect(isBlockedAddress(text), text).toBe(true)
      }),
      { numRuns: propertyRuns(3000) },
    )
  })

  test('of IPv6, only addresses that are assigned to the internet are allowed', () => {
    for (const blocked of [
      '::',
      '::1',
      'fe80::1',
      'fe80::1%eth0',
      'fc00::1',
      'fd12:3456::1',
      'fec0::1',
      'ff02::1',
      '100::1',
      '2001:db8::1',
      '3fff::1',
      '5f00::1',
    ])
      expect(isBlockedAddress(blocked), blocked).toBe(true)
    for (const blocked of ['4000::1', 'e000::1', '2002::1', '2001::1', '64:ff9b:2::1', '::5.6.7.8', '', 'not an address', '1.2.3.4.5'])
      expect(isBlockedAddress(blocked), blocked).toBe(true)
    for (const open of ['2606:4700::1111', '2a00:1450:4001::1', '::ffff:93.184.216.34', '64:ff9b::93.184.216.34'])
      expect(isBlockedAddress(open), open).toBe(false)
  })
})

describe('URLs', () => {
  test("an address that the machine's resolver reads as private is refused in every notation, or is not a valid URL", async () => {
    await fc.assert(
      fc.asyncProperty(privateIpv4, fc.constantFrom(...notations), async (at, write) => {
        const host = write(at)
        // The resolver must read the text as that address. Otherwise the text is no notation of the address. Texts with a % or a dot at the end are
        // left out, because resolving them would use the network.
        const taken = /[%\uff10-\uff19]|\.$/.test(host) ? null : await lookup(host, { family: 4 }).catch(() => null)
        if (taken !== null) expect(isBlockedAddress(taken.address), host).toBe(true)
        expect(refuses(`https://${host}/v1`), host).toBe(true)
        expect(refuses(`https://${host}:8443/v1`), host).toBe(true)
      }),
      { numRuns: propertyRuns(500) },
    )
    fc.assert(
      fc.property(privateIpv4, fc.constantFrom(...ipv6Notations), (at, write) => {
        expect(refuses(`https://[${write(at)}]/v1`), write(at)).toBe(true)
      }),
      { numRuns: propertyRuns(1000) },
    )
  })

  test('hosts that attackers use are refused', () => {
    for (const host of ['2130706433', '0x7f.1', '127.1', '017700000001', '127.0.0.1.', '0', '0.0.0.0', '%31%32%37.0.0.1', '[::]', '[::1]', '169.254.169.254'])
      expect(refuses(`https://${host}/`), host).toBe(true)
  })

  test('other schemes, user names, passwords and plain http are refused', () => {
    for (const url of ['ftp://example.test/', 'file:///etc/passwd', 'gopher://example.test/', 'javascript:alert(1)', 'unix:/run/docker.sock'])
      expect(refuses(url), url).toBe(true)
    for (const url of ['https://user@example.test/', 'https://user:pass@example.test/', 'https://:pass@example.test/', 'http://example.test/'])
      expect(refuses(url), url).toBe(true)
    expect(refuses('https://example.test:8443/v1')).toBe(false)
  })
})

describe('names', () => {
  /** Returns a resolver that answers each look-up with the next list. */
  const answering = (...answers: readonly (readonly string[])[]): LookupFunction => {
    const left = [...answers]
    return (_hostname, _options, callback) =>
      callback(
        null,
        (left.shift() ?? []).map(address => ({ address, family: isIP(address) })),
      )
  }
  const ask = (look: LookupFunction, hostname: string): Promise<string> =>
    new Promise(done =>
      look(hostname, { all: true }, (error, found) =>
        done(error === null && typeof found !== 'string' ? found.map(({ address }) => address).join() : (error?.name ?? '')),
      ),
    )
  const blocked = BlockedAddressError.name

  test('a name is refused when any of its addresses is not public, and when it has no address', async () => {
    const look = makeUrlGuard([], answering(['93.184.216.34'], ['93.184.216.34', '10.0.0.1'], ['2606:4700::1', '::1'], ['fd00::1'], [])).lookup
    const answers = [await ask(look, 'a.test'), await ask(look, 'a.test'), await ask(look, 'a.test'), await ask(look, 'a.test'), await ask(look, 'a.test')]
    expect(answers).toEqual(['93.184.216.34', blocked, blocked, blocked, blocked])
  })

  test('with OUTBOUND_ALLOW, one name may resolve to any address, on the port in the entry only', async () => {
    const permissive = makeUrlGuard(['Models.Internal:8000', '10.0.0.5:80', '[::1]:9000'], answering(['10.0.0.7'], ['10.0.0.7'], ['10.0.0.7'], ['10.0.0.7']))
    const url = new URL('http://models.internal:8000/v1')
    permissive.check(url)
    expect(await ask(permissive.lookupFor(url), 'models.internal')).toBe('10.0.0.7')
    expect(await ask(permissive.lookupFor(url), 'bucket.models.internal')).toBe(blocked)
    expect(await ask(permissive.lookupFor(new URL('https://models.internal:9999/v1')), 'models.internal')).toBe(blocked)
    expect(await ask(permissive.lookup, 'models.internal')).toBe(blocked)
    permissive.check(new URL('http://10.0.0.5/v1'))
    permissive.check(new URL('http://[::1]:9000/v1'))
    for (const url of [
      'http://10.0.0.5:81/',
      'https://10.0.0.5/',
      'http://10.0.0.6/',
      'http://[::1]:9001/',
      'http://models.internal/',
      'http://models.internal.:8000/',
    ])
      expect(() => permissive.check(new URL(url)), url).toThrow('OUTBOUND_ALLOW')
  })

  test('an invalid list of host:port pairs stops the start with a message', () => {
    for (const entry of ['localhost', 'http://localhost:8000', '::1:8000', 'localhost:99999', 'user@localhost:80', '*:80/x'])
      expect(() => loadConfig({ OUTBOUND_ALLOW: entry }), entry).toThrow(ConfigError)
    expect(loadConfig({ OUTBOUND_ALLOW: 'localhost:8000, [::1]:80' }).OUTBOUND_ALLOW).toEqual(['localhost:8000', '[::1]:80'])
  })
})
