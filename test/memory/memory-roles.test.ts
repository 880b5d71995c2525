import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'

const addUser = statement<[email: string], { id: number }>('test.add_user', `insert into users (email, created_at) values ($1::text, now()) returning id`)
const addMember = statement<[orgId: number, userId: number, role: string]>(
  'test.add_member',
  `insert into org_members (org_id, user_id, role, created_at) values ($1::int, $2::int, $3::text, now())`,
)

describe('who may configure shared memory', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp({ env: { FOLDER_STORE: 'on' } })
  })
  afterAll(() => app.stop())

  const keyOf = async (role: string): Promise<string> => {
    const user = await app.db.one(addUser, `${role}@test-org.test`)
    await app.db.exec(addMember, app.orgId, user.id, role)
    return (await app.gateway.app.keys.create({ orgId: app.orgId, userId: user.id, workspaceId: null, name: `${role} key`, scope: 'full' })).key
  }

  test('MEM-04 AUTH-17 a member may not configure the store, an admin may', async () => {
    const member = await keyOf('member')
    const refused = await app.call('PUT', '/v1/me/memory-store', { store: 'folder' }, { token: member })
    expect([refused.status, refused.json.error.code]).toEqual([403, 'forbidden'])
    expect((await app.call('GET', '/v1/me/memory-store', undefined, { token: member })).json).toEqual({ configured: false })
    const allowed = await app.call('PUT', '/v1/me/memory-store', { store: 'folder' }, { token: await keyOf('admin') })
    expect([allowed.status, allowed.json]).toEqual([200, { ok: true }])
  })
})
