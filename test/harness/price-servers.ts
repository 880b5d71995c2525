import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Servers for a public price list and an exchange rate on loopback. A test can change their answers at any time. */
export interface PriceServers {
  /** The settings that make a gateway use them. */
  readonly env: Readonly<Record<string, string>>
  /** The answer of each server: a JSON value, or text that is sent unchanged. */
  prices: unknown
  rates: unknown
  /** The status of both servers. */
  status: number
  /** True: accepts requests and never answers them. */
  hang: boolean
  /** The requests so far, each as `prices` or `rates`. */
  readonly requests: string[]
  close(): Promise<void>
}

export async function startPriceServers(): Promise<PriceServers> {
  const server = createServer((request, response) => {
    const name = request.url?.startsWith('/api/models') ? 'prices' : 'rates'
    servers.requests.push(name)
    if (servers.hang) return
    const value = servers[name]
    response.writeHead(servers.status, { 'content-type': 'application/json' })
    response.end(typeof value === 'string' ? value : JSON.stringify(value))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const servers: PriceServers = {
    env: { PRICE_FEED_URL: `${url}/api/models?key=list-secret`, FX_URL: `${url}/v6/rate-secret/latest/USD` },
    prices: { data: [] },
    rates: { result: 'success', base_code: 'USD', rates: { USD: 1, INR: 90 } },
    status: 200,
    hang: false,
    requests: [],
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return servers
}
