/** Lists whose rows hold texts of callers: a page ends at a number of bytes, and the cursor goes on behind it. */
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'

const kib = 1024
/** The bound of a page is 512 KiB of texts. The other fields of the rows come on top of it. */
const pageMaxBytes = 600 * kib
const addTeams = statement<[orgId: number, people: number, teams: number]>(
  'test.page_bytes_add_teams',
  `with people as (
     insert into users (email, name, created_at) select 'crowd' || i || '@page.example', 'x', now() from generate_series(1, $2::int) i returning id),
   members as (
     insert into org_members (org_id, user_id, role, created_at) select $1::int, id, 'member', now() from people returning user_id),
   teams as (
     insert into workspaces (org_id, name, created_at, archived_at)
     select $1::int, 'team ' || i, now(), case when i % 2 = 0 then now() end from generate_series(1, $3::int) i returning id)
   insert into workspace_members (org_id, workspace_id, user_id, created_at) select $1::int, teams.id, user_id, now() from teams, members`,
)

describe('pages have a maximum of bytes', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp({ env: { CONSOLE_RPM: '100000' } })
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  /** Follows the cursors. Returns the ids of the rows in order, and the reply of each page. */
  async function walk(path: string, field: string, as = cookie): Promise<{ ids: number[]; pages: TestReply[] }> {
    const ids: number[] = []
    const pages: TestReply[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const reply = await app.call('GET', `${path}${cursor === '' ? '' : `?cursor=${cursor}`}`, undefined, { cookie: as })
      expect(reply.status).toBe(200)
      pages.push(reply)
      ids.push(...reply.json[field].map((each: { id: number }) => each.id))
      cursor = reply.json.next_cursor
    }
    return { ids, pages }
  }

  async function expectSmallPages(path: string, field: string, made: readonly number[]): Promise<void> {
    const { ids, pages } = await walk(path, field)
    expect(ids).toEqual(made)
    expect(pages.length).toBeGreaterThan(1)
    for (const { text } of pages) expect(Buffer.byteLength(text)).toBeLessThan(pageMaxBytes)
    for (const cursor of ['nonsense', '0', '-1', 'archived-', '99999999999'])
      expect((await app.call('GET', `${path}?cursor=${cursor}`, undefined, { cookie })).json.error?.code, cursor).toBe('bad_request')
    expect((await app.call('GET', `${path}?limit=1`, undefined, { cookie })).json[field]).toHaveLength(1)
  }

  test('keys with long allow-lists, which members can make, fill several pages', async () => {
    const { keys } = (await app.call('GET', '/me/keys', undefined, { cookie })).json
    const made: number[] = keys.map((key: { id: number }) => key.id)
    const list = (seed: number) => Array.from({ length: 100 }, (_, index) => `${seed}-${index}-`.padEnd(200, 'x'))
    for (let at = 0; at < 30; at++) {
      const reply = await app.call('POST', '/me/keys', { allowed_models: list(at), allowed_providers: list(at) }, { cookie })
      expect(reply.status).toBe(201)
      made.unshift(reply.json.id)
    }
    await expectSmallPages('/me/keys', 'keys', made)
  })

  test('an allow-list of a key or an agent has at most 20,000 bytes', async () => {
    const list = (letters: string) => Array.from({ length: 100 }, (_, index) => String(index).padStart(2, '0') + letters)
    const asks: ((body: object) => Promise<TestReply>)[] = [
      body => app.call('POST', '/me/keys', body, { cookie }),
      body => app.call('PATCH', `/me/keys/${app.keyId}`, body, { cookie }),
      body => app.call('POST', '/v1/me/agents', { name: 'listed', ...body }),
    ]
    for (const ask of asks)
      for (const field of ['allowed_models', 'allowed_providers']) {
        const refused = await ask({ [field]: list('漢'.repeat(67)) })
        expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_request'])
        expect(refused.json.error.message).toContain('at most 20000 bytes together')
        expect((await ask({ [field]: list('漢'.repeat(66)) })).status).toBeLessThan(300)
        expect((await ask({ [field]: list('x'.repeat(198)) })).status).toBeLessThan(300)
      }
    expect((await app.call('PATCH', `/me/keys/${app.keyId}`, { allowed_models: null, allowed_providers: null }, { cookie })).status).toBe(200)
  })

  test('collections with long readmes fill several pages, each with whole readmes', async () => {
    // Line ends and quotes are two bytes each in JSON.
    const readme = '漢"\n'.repeat(13_000)
    const made: number[] = []
    for (let at = 0; at < 12; at++) {
      const body = { name: `c${at}`, model: 'test-model', steps: ['test-model'], readme_md: readme }
      const reply = await app.call('POST', '/me/collections', body, { cookie })
      expect(reply.status).toBe(201)
      made.unshift(reply.json.id)
    }
    await expectSmallPages('/me/collections', 'collections', made)
    const { collections } = (await app.call('GET', '/me/collections', undefined, { cookie })).json
    for (const each of collections) expect(each.readme_md).toBe(readme)
  })

  test('trust rules with many keys and long claims fill several pages', async () => {
    const agent = await app.newAgent('ci')
    const { n, e } = generateKeyPairSync('rsa', { modulusLength: 4096 }).publicKey.export({ format: 'jwk' })
    const jwks = { keys: Array.from({ length: 40 }, (_, index) => ({ kty: 'RSA', n, e, kid: `key ${index}` })) }
    const made: number[] = []
    for (let at = 0; at < 20; at++) {
      const rule = { name: `r${at}`, issuer: `https://issuer-${at}.example`, subject: 'job', jwks, agent_id: agent.id, key_id: app.keyId }
      const reply = await app.call('POST', '/me/agent-trust', rule, { cookie })
      expect(reply.status).toBe(201)
      made.push(reply.json.id)
    }
    await expectSmallPages('/me/agent-trust', 'rules', made)
  })

  test('workspaces with large teams fill several pages, active ones first', async () => {
    await app.db.exec(addTeams, app.orgId, 600, 100)
    const { ids, pages } = await walk('/me/workspaces', 'workspaces')
    const states = pages.flatMap(page => page.json.workspaces.map((each: { archived: boolean }) => each.archived))
    expect(states).toEqual([...Array(50).fill(false), ...Array(50).fill(true)])
    await expectSmallPages('/me/workspaces', 'workspaces', ids)
  })
})
