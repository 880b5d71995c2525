import { describe, expect, test } from 'vitest'
import { clientIpOf } from '../../../src/gateway/http/callers/client-ip.ts'
import { loadConfig } from '../../../src/platform/config.ts'
import { addressRangesOf, networkOf } from '../../../src/platform/outbound/address-ranges.ts'
import { startApp } from '../../harness/app.ts'

const clientIp = (peer: string, forwarded: string | undefined, trusted: readonly string[] = ['10.0.0.0/8', '127.0.0.1', 'fd00::/8']): string =>
  clientIpOf(addressRangesOf(trusted).ranges)({
    socket: { remoteAddress: peer } as never,
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  })

describe('the address of the client', () => {
  test('without trusted proxies, the client has the address of the connection and X-Forwarded-For is ignored', () => {
    expect(clientIp('203.0.113.9', '198.51.100.1')).toBe('203.0.113.9')
    expect(clientIp('203.0.113.9', undefined)).toBe('203.0.113.9')
    expect(clientIp('127.0.0.1', '198.51.100.1', [])).toBe('127.0.0.1')
  })

  test('behind trusted proxies, the client has the rightmost address that is not a trusted proxy', () => {
    expect(clientIp('127.0.0.1', '198.51.100.1')).toBe('198.51.100.1')
    expect(clientIp('10.1.2.3', '1.1.1.1, 198.51.100.1, 10.9.9.9')).toBe('198.51.100.1')
    expect(clientIp('10.1.2.3', undefined)).toBe('10.1.2.3')
    expect(clientIp('fd12::1', '2001:DB8::0:1')).toBe('2001:db8::1')
  })

  test('an IPv4 address in IPv6 notation becomes IPv4', () => {
    expect(clientIp('::ffff:127.0.0.1', '::ffff:198.51.100.1')).toBe('198.51.100.1')
    expect(clientIp('::ffff:203.0.113.9', undefined)).toBe('203.0.113.9')
  })

  test('an invalid address in X-Forwarded-For ends the search at the last valid one', () => {
    expect(clientIp('10.0.0.1', 'unknown')).toBe('10.0.0.1')
    expect(clientIp('10.0.0.1', '198.51.100.1, rubbish, 10.0.0.2')).toBe('10.0.0.2')
    expect(clientIp('10.0.0.1', '')).toBe('10.0.0.1')
    for (const odd of ['0x7f000001', '1', '127.1', '010.0.0.1', '<script>', '1.2.3.4.5']) expect(clientIp('10.0.0.1', odd), odd).toBe('10.0.0.1')
  })

  test('ports and zones are removed from an address', () => {
    expect(clientIp('10.0.0.1', '198.51.100.1:4711')).toBe('198.51.100.1')
    expect(clientIp('10.0.0.1', '[2001:db8::5]:443')).toBe('2001:db8::5')
    expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0::/64')
    expect(networkOf('nobody')).toBeNull()
  })

  test('when every hop is a trusted proxy, the client has the address of the first one', () => {
    expect(clientIp('10.0.0.1', '10.0.0.3, 10.0.0.2')).toBe('10.0.0.3')
    expect(clientIp('10.0.0.1', Array.from({ length: 5000 }, () => '10.0.0.2').join(','))).toBe('10.0.0.2')
  })

  test('invalid TRUSTED_PROXIES are named in an error at the start', () => {
    for (const bad of ['10.0.0.0/33', 'proxy.internal', '10.0.0.0/8/8', '10.0.0/8', '::/129', '10.0.0.0/', '1'])
      expect(() => loadConfig({ TRUSTED_PROXIES: `127.0.0.1,${bad}` }), bad).toThrow(
        `TRUSTED_PROXIES must list IP addresses or CIDR ranges such as 10.0.0.0/8, not "${bad}"`,
      )
    expect(loadConfig({ TRUSTED_PROXIES: '10.0.0.0/8, ::1, 192.0.2.7' }).TRUSTED_PROXIES).toHaveLength(3)
  })
})

describe('LIM-10 X-Forwarded-For', () => {
  const tries = async (env: Record<string, string>): Promise<number[]> => {
    const app = await startApp({ env: { ANON_RPM: '2', ...env } })
    try {
      const statuses: number[] = []
      for (let i = 0; i < 6; i++)
        statuses.push((await app.call('GET', '/v1/models', undefined, { token: null, headers: { 'x-forwarded-for': `198.51.100.${i}` } })).status)
      return statuses
    } finally {
      await app.stop()
    }
  }

  test('LIM-10 X-Forwarded-For of configured proxies is read, so their clients are counted separately', async () => {
    expect(await tries({ TRUSTED_PROXIES: '127.0.0.0/8,::1' })).toEqual([200, 200, 200, 200, 200, 200])
  })

  test('LIM-10 X-Forwarded-For of all other senders is ignored, so a forged header has no effect', async () => {
    // A minute may end between two calls, and then two more calls are served.
    const isServed = (await tries({ TRUSTED_PROXIES: '10.0.0.0/8' })).filter(status => status === 200).length
    expect(isServed).toBeGreaterThanOrEqual(2)
    expect(isServed).toBeLessThanOrEqual(4)
  })
})
