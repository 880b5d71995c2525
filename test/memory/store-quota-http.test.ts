/** The operator limits the quota of a store that the operator pays for. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'

let app: TestApp
let s3: S3TestServer
beforeAll(async () => {
  s3 = await startS3Server()
  app = await startApp({ env: { FOLDER_STORE: 'on', OUTBOUND_ALLOW: s3.hostPort, MEMORY_QUOTA_MAX_MB: '5' } })
})
afterAll(async () => {
  await app?.stop()
  await s3?.close()
})

const configure = (body: object) => app.call('PUT', '/v1/me/memory-store', body)
const quota = async (): Promise<number> => (await app.call('GET', '/v1/me/memory-store')).json.quota_mb

test('the quota of a store that the operator pays for is at most MEMORY_QUOTA_MAX_MB, and an organisation chooses any quota for its own bucket', async () => {
  expect((await configure({ store: 'folder' })).status).toBe(200)
  expect(await quota(), 'the default is cut too').toBe(5)
  const refused = await configure({ store: 'folder', quota_mb: 6 })
  expect([refused.status, refused.json.error.code, refused.json.error.message]).toEqual([400, 'bad_request', expect.stringContaining('MEMORY_QUOTA_MAX_MB')])
  expect((await configure({ quota_mb: 6 })).status, 'without naming the store').toBe(400)
  expect((await configure({ quota_mb: 4 })).status).toBe(200)
  expect(await quota()).toBe(4)
  const own = { endpoint: s3.endpoint, bucket: s3.bucket, access_key: s3.accessKey, secret_key: s3.secretKey }
  expect((await configure({ ...own, quota_mb: 50_000 })).status).toBe(200)
  expect(await quota()).toBe(50_000)
  expect((await configure({ store: 'folder' })).status).toBe(200)
  expect(await quota(), 'what another store had is cut').toBe(5)
})

test('HARD-17 unknown fields in the body of a store or a promotion are 400, and the error names them', async () => {
  for (const [method, path] of [
    ['PUT', '/v1/me/memory-store'],
    ['POST', '/v1/me/memory/promote'],
  ] as const) {
    const refused = await app.call(method, path, { name: 'security.md', content: 'x', store: 'folder', quota: 1 })
    expect([refused.status, refused.json.error.code, refused.json.error.message], path).toEqual([400, 'bad_request', expect.stringContaining('quota')])
  }
})
