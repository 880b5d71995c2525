/** Stores that say that their bucket is in another region. The gateway must follow them at a limited rate. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { S3Store } from '../../src/memory/stores/s3/object-store-s3.ts'
import { fixedKeys } from '../../src/memory/stores/s3/s3-options.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createOutbound, openOrigin } from '../../src/platform/outbound/outbound.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { until } from '../harness/until.ts'

const keepAliveSeconds = 600
const here: LookupFunction = (_hostname, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }])

let server: Server
let port: number
let open: Set<unknown>
let accepted = 0
let regions: string[] = []
let regionOf: (request: IncomingMessage) => string | null
beforeEach(async () => {
  const sockets = new Set()
  open = sockets
  accepted = 0
  regions = []
  server = createServer((request, response) => {
    regions.push(/Credential=A\/\d+\/([^/]+)\//.exec(String(request.headers.authorization))?.[1] ?? '')
    const region = regionOf(request)
    const alive = { connection: 'keep-alive', 'keep-alive': `timeout=${keepAliveSeconds}` }
    if (region !== null) response.writeHead(301, { ...alive, 'x-amz-bucket-region': region, 'content-length': '0' }).end()
    else response.writeHead(200, { ...alive, 'content-length': '2', etag: '"e"' }).end('ok')
  })
  server.keepAliveTimeout = keepAliveSeconds * 1_000
  server.on('connection', socket => {
    sockets.add(socket)
    accepted++
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

function storeAt(endpoint: string, passedMs: () => number = () => 0): S3Store {
  return new S3Store({
    endpoint,
    bucket: 'memory',
    region: 'us-east-1',
    access: { addressing: 'path', sse: 'bucket', kmsKeyId: null },
    keys: fixedKeys('A', 'B'),
    timeoutMs: 5_000,
    objectBytesMax: 1_024,
    lookupFor: () => here,
    clock: { ...systemClock, monotonicMs: () => passedMs() },
    ids: systemIds,
  })
}

const get = (store: S3Store): Promise<unknown> => store.get('org-1/agents/a', { sizeBytesMax: 1_024 })

test('HARD-04 when a store names another region at every call, the gateway follows once a minute and keeps its connections', async () => {
  let count = 0
  regionOf = () => `region-${++count}`
  let passedMs = 0
  const store = storeAt(`http://127.0.0.1:${port}`, () => passedMs)
  for (let calls = 0; calls < 100; calls++) await expect(get(store)).rejects.toMatchObject({ name: 'ObjectStoreError' })
  expect([regions.length, new Set(regions).size]).toEqual([101, 2])
  passedMs = 60_000
  await expect(get(store)).rejects.toMatchObject({ name: 'ObjectStoreError' })
  expect(new Set(regions).size).toBe(3)
  // A call that begins before the previous reply is read completely opens a second connection.
  expect(accepted).toBeLessThanOrEqual(2)
  store.close()
  await until(() => open.size === 0, 'a closed store has no connection')
})

test('concurrent calls that learn the other region all follow it', async () => {
  regionOf = request => (String(request.headers.authorization).includes('/eu-north-1/') ? null : 'eu-north-1')
  const store = storeAt(`http://127.0.0.1:${port}`)
  await Promise.all(Array.from({ length: 20 }, () => get(store)))
  expect(store.region).toBe('eu-north-1')
  expect(regions.filter(region => region === 'us-east-1').length).toBeLessThanOrEqual(20)
  store.close()
})

test('at AWS, the connections to the host of the first region end when its calls have ended', async () => {
  regionOf = () => 'eu-north-1'
  // The host of the other region would answer on port 443, where no server listens in this test.
  const store = storeAt(`http://s3.us-east-1.amazonaws.com:${port}`)
  await Promise.allSettled(Array.from({ length: 10 }, () => get(store)))
  expect(accepted).toBeGreaterThan(0)
  expect(store.region).toBe('eu-north-1')
  await until(() => open.size === 0, 'no connection is left at the host of the first region', 5_000)
  store.close()
})

test("a user's server cannot decide how long the gateway keeps idle connections to it", async () => {
  regionOf = () => null
  const origin = openOrigin(`http://127.0.0.1:${port}`, { lookup: here, connectionsMax: 1, connectTimeoutMs: 1_000, silenceMs: 1_000 })
  const timeouts = { connectTimeoutMs: 1_000, firstByteTimeoutMs: 1_000, streamIdleTimeoutMs: 1_000 }
  const outbound = createOutbound({ ...timeouts, allow: [`127.0.0.1:${port}`], lookup: here })
  const replies = [
    await origin.send({ method: 'GET', path: '/', headers: {} }),
    await outbound.toUserUrl({ method: 'GET', url: `http://127.0.0.1:${port}/`, headers: {} }),
  ]
  for (const { body } of replies) await body.buffer(10)
  expect(open.size).toBe(2)
  await until(() => open.size === 0, 'idle connections end after 10 s though the server asks for 600 s', 20_000)
  origin.close()
  await outbound.close()
}, 30_000)
