/** Names that look the same are the same, whichever way a keyboard or file system wrote them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../harness/app.ts'

const insertAgent = statement<[orgId: number, name: string], { id: number }>(
  'test.names_insert_agent',
  `insert into agents (org_id, name, created_at) values ($1::int, $2::text, now()) returning id`,
)
const renameKey = statement<[id: number, name: string]>('test.names_rename_key', 'update api_keys set name = $2::text where id = $1::int')

const composed = (text: string): string => text.normalize('NFC')
const decomposed = (text: string): string => text.normalize('NFD')

describe('names', () => {
  let app: TestApp
  let cookie: string
  beforeAll(async () => {
    app = await startApp()
    cookie = await app.signIn()
  })
  afterAll(() => app.stop())

  const console_ = (method: string, path: string, body?: unknown) => app.call(method, path, body, { cookie })
  const agent = (name: string, body: object = {}) => app.call('POST', '/v1/me/agents', { name, ...body })

  test('EDGE-13 names of agents, children, keys, workspaces and organisations are kept composed and trimmed, and what looks the same is the same', async () => {
    expect(composed('Café')).not.toBe(decomposed('Café'))
    const first = await agent(decomposed('\u00a0 Café '), { may_delegate: true })
    expect([first.status, first.json.name]).toEqual([201, composed('Café')])
    for (const name of [composed('Café'), decomposed('Café'), ` ${decomposed('Café')}\n`]) expect((await agent(name)).json.id, name).toBe(first.json.id)
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${first.json.id}/token`, {})).json
    const child = (name: string) => app.call('POST', `/v1/me/agents/${first.json.id}/children`, { name }, { token })
    const born = await child(decomposed('Ünter'))
    expect([born.status, born.json.agent.name]).toEqual([201, composed('Ünter')])
    expect((await child(composed('Ünter'))).json.agent.id).toBe(born.json.agent.id)

    const key = await console_('POST', '/me/keys', { name: decomposed(' Schlüssel ') })
    expect([key.status, key.json.name]).toEqual([201, composed('Schlüssel')])
    for (const form of [composed, decomposed])
      expect((await console_('POST', '/me/keys', { name: form('Schlüssel') })).json.error.code).toBe('duplicate_key_name')
    const other = await console_('POST', '/me/keys', { name: 'other' })
    expect((await console_('PATCH', `/me/keys/${other.json.id}`, { name: decomposed('Schlüssel') })).json.error.code).toBe('duplicate_key_name')

    const space = await console_('POST', '/me/workspaces', { name: decomposed('Büro') })
    expect([space.status, space.json.name]).toEqual([201, composed('Büro')])
    for (const form of [composed, decomposed])
      expect((await console_('POST', '/me/workspaces', { name: form('BÜRO') })).json.error.code).toBe('duplicate_workspace')

    expect((await console_('PATCH', '/me/org', { name: decomposed(' Générale ') })).json.org.name).toBe(composed('Générale'))
    expect((await console_('POST', '/me/orgs', { name: decomposed('Équipe') })).json.name).toBe(composed('Équipe'))
    // Hangul, several marks on a letter, and letters with two code points for one look.
    for (const name of ['한국', 'ệ', 'Å']) {
      const made = await agent(decomposed(name))
      expect(made.json.name).toBe(composed(name))
      expect((await agent(composed(name))).json.id).toBe(made.json.id)
    }
    expect((await agent('\u212b')).json.id, 'the sign of the unit is the letter').toBe((await agent('Å')).json.id)
  })

  test('EDGE-13 names from before they were normalised go on: they are found in every form, and no second one is made beside them', async () => {
    const { id } = await app.db.one(insertAgent, app.orgId, decomposed('Vergangenes Öl'))
    for (const form of [composed, decomposed]) expect((await agent(form('Vergangenes Öl'))).json.id).toBe(id)
    const lead = (await agent('names lead', { may_delegate: true })).json
    const { access_token: token } = (await app.call('POST', `/v1/me/agents/${lead.id}/token`, {})).json
    const taken = await app.call('POST', `/v1/me/agents/${lead.id}/children`, { name: composed('Vergangenes Öl') }, { token })
    expect([taken.status, taken.json.error.code]).toEqual([409, 'agent_name_taken'])
    const made = await console_('POST', '/me/keys', { name: 'to be old' })
    await app.db.exec(renameKey, made.json.id, decomposed('Früher'))
    for (const form of [composed, decomposed]) expect((await console_('POST', '/me/keys', { name: form('Früher') })).json.error.code).toBe('duplicate_key_name')
    expect((await console_('PATCH', `/me/keys/${made.json.id}`, { rpm_limit: 5 })).json.key).toMatchObject({ id: made.json.id, rpm_limit: 5 })
  })
})
