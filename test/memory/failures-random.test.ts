/** Random schedules of writers and faults. In the end, index, quota and bucket must agree, and no acknowledged update may be lost. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { type Fault, type FaultyStore, startFaultyStore } from '../harness/faulty-store.ts'
import { propertyRuns } from '../harness/property-runs.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { callFrom, errorCode, keyOf, type TestMemory, testMemory } from './service.ts'

let database: TestDatabase
let server: S3TestServer
let proxy: FaultyStore
let testing: TestMemory
let orgId = 5000

const endIntents = statement<[orgId: number]>('test.end_intents', `update memory_intents set expires_at = '2000-01-01' where org_id = $1::int`)

beforeAll(async () => {
  database = await testDatabase()
  server = await startS3Server()
  proxy = await startFaultyStore(server)
  testing = await testMemory({ db: database.db, allow: [proxy.hostPort], timeoutMs: 2_000 })
}, 60_000)
afterAll(async () => {
  await testing?.close()
  await proxy?.close()
  await server?.close()
  await database?.dispose()
})

const pass: Fault = { kind: 'pass' }
const faults: readonly Fault[] = [
  pass,
  pass,
  pass,
  { kind: 'lost-reply' },
  { kind: 'status', status: 500 },
  { kind: 'lie-status', status: 500 },
  { kind: 'status', status: 403, code: 'AccessDenied' },
  { kind: 'status', status: 507 },
]
type Step =
  | { readonly kind: 'put'; readonly key: number; readonly size: number }
  | { readonly kind: 'swap'; readonly key: number }
  | { readonly kind: 'remove'; readonly key: number }
  | { readonly kind: 'meddle'; readonly key: number }
const keys = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), key: keys, size: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ kind: fc.constant('swap' as const), key: keys }),
  fc.record({ kind: fc.constant('remove' as const), key: keys }),
  fc.record({ kind: fc.constant('meddle' as const), key: keys }),
)

test('after any schedule of faults, index, quota and bucket agree, no bytes stay reserved, and every failed call has a documented error', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 3, maxLength: 12 }),
      fc.array(fc.nat(faults.length - 1), { minLength: 4, maxLength: 40 }),
      fc.constantFrom(0, 2),
      async (steps, schedule, versions) => {
        orgId++
        const call = callFrom(keyOf(orgId))
        const { endpoint, hostPort: _hostPort } = proxy
        proxy.decide = () => pass
        const { bucket, accessKey, secretKey } = server
        await testing.memory.config.put(orgId, { endpoint, bucket, access_key: accessKey, secret_key: secretKey, history_versions: versions })
        const { objects, reconcile } = testing.memory
        let at = 0
        proxy.decide = () => faults[schedule[at++ % schedule.length] ?? 0] ?? pass
        const swapped = new Map<number, number>()
        const run = async (step: Step): Promise<string> => {
          const key = `agents/${step.kind === 'swap' ? 'swap' : 'k'}${step.key}`
          if (step.kind === 'put') return errorCode(() => objects.write(call, key, Buffer.alloc(step.size)))
          if (step.kind === 'remove') return errorCode(() => objects.remove(call, key))
          if (step.kind === 'meddle') {
            server.put(`org-${orgId}/${key}`, 'meddled')
            return 'ok'
          }
          // Adds one byte by compare and swap. An acknowledged byte must not be lost.
          return errorCode(async () => {
            const found = await objects.read(call, key).catch(() => null)
            const conditions = found === null ? { ifNoneMatch: '*' } : { ifMatch: found.etag }
            await objects.write(call, key, Buffer.alloc((found?.bytes.length ?? 0) + 1, 'x'), conditions)
            swapped.set(step.key, (swapped.get(step.key) ?? 0) + 1)
          })
        }
        const codes = await Promise.all(steps.map(run))
        const said = ['ok', 'memory_conflict', 'memory_busy', 'memory_store_failed', 'memory_store_busy', 'memory_quota_exceeded']
        expect(codes.filter(code => !said.includes(code))).toEqual([])
        proxy.decide = () => pass
        await database.db.exec(endIntents, orgId)
        await testing.memory.sweep(testing.clock.nowMs())
        await reconcile.run(orgId, new AbortController().signal)
        const inBucket = [...server.objects].filter(([key]) => key.startsWith(`org-${orgId}/agents/`))
        const usedBytes = inBucket.reduce((sum, [, { bytes }]) => sum + BigInt(bytes.length), 0n)
        expect(await testing.usage(orgId)).toMatchObject({ usedBytes, reservedBytes: 0n, objects: BigInt(inBucket.length) })
        for (const [key, count] of swapped) expect(server.objects.get(`org-${orgId}/agents/swap${key}`)?.bytes.length).toBeGreaterThanOrEqual(count)
      },
    ),
    { numRuns: propertyRuns(20), interruptAfterTimeLimit: 8_000 },
  )
}, 60_000)
