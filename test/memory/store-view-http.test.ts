import { expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp } from '../harness/app.ts'

const hide = statement<[]>('test.hide_index', 'alter table memory_objects rename to hidden_memory_objects')
const show = statement<[]>('test.show_index', 'alter table hidden_memory_objects rename to memory_objects')

test('a view of the memory store shows the used bytes without reading the index of the objects', async () => {
  const app = await startApp({ env: { FOLDER_STORE: 'on' } })
  try {
    expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder', quota_mb: 1 })).status).toBe(200)
    expect((await app.call('PUT', '/v1/me/memory/o?key=agents%2Fone', 'twelve bytes')).status).toBeLessThan(300)
    const before = (await app.call('GET', '/v1/me/memory-store')).json
    expect(before).toMatchObject({ configured: true, bytes_used: 12 })
    await app.db.exec(hide)
    try {
      const view = await app.call('GET', '/v1/me/memory-store')
      expect([view.status, view.json]).toEqual([200, before])
    } finally {
      await app.db.exec(show)
    }
  } finally {
    await app.stop()
  }
})
