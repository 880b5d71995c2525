import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startApp } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'

// Folder stores belong to the embedded database.
test.skipIf(onPostgres)('the deletion of an object of a folder store also removes the folders that are empty then', async () => {
  const app = await startApp({})
  const org = await app.otherOrg('Deep')
  expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder', quota_mb: 1 }, { token: org.key })).status).toBe(200)
  const keys = Array.from({ length: 20 }, (_, at) => `agents/shared/${Array.from({ length: 15 }, (_, depth) => `d${at % 10}-${depth}`).join('/')}/${at}`)
  const path = (key: string) => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
  const put = async (key: string) => expect((await app.call('PUT', path(key), 'x', { token: org.key })).status).toBe(200)
  const erase = async (key: string) => expect((await app.call('DELETE', `${path(key)}&history=erase`, undefined, { token: org.key })).status).toBe(200)
  const left = async () => (await readdir(join(app.dataDir, 'memory', `org-${org.orgId}`), { recursive: true })).length
  const before = await left()
  await Promise.all(keys.map(put))
  // Writes and deletions in the same folders run concurrently, and no write fails.
  for (let round = 0; round < 5; round++) await Promise.all(keys.map((key, at) => (at % 2 === round % 2 ? erase(key) : put(key))))
  await Promise.all(keys.map(erase))
  expect(await left()).toBeLessThanOrEqual(before + 1)
  await app.stop()
})
