import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../harness/app.ts'
import { type S3TestServer, startS3Server } from '../harness/s3-server.ts'
import { mcpClients } from '../mcp/mcp-clients.ts'
import { useStore } from './rights-people.ts'

let app: TestApp
let store: S3TestServer
let agent: { id: number; token: string }
beforeAll(async () => {
  store = await startS3Server()
  app = await startApp({ env: { OUTBOUND_ALLOW: store.hostPort } })
  await useStore(app, store)
  agent = await app.newAgent('lead')
}, 60_000)
afterAll(async () => {
  await app?.stop()
  await store?.close()
})
afterEach(() => closeAll())

const { eras, closeAll } = mcpClients(() => app)
const o = (key: string): string => `/v1/me/memory/o?key=${encodeURIComponent(key)}`
const put = async (key: string, body: string, token = app.key, headers: Record<string, string> = {}): Promise<void> => {
  expect((await app.call('PUT', o(key), body, { token, headers })).status).toBe(200)
}
/** Returns the author of a key, as every HTTP endpoint shows it. `word` is a word in the content of the key. */
const saidOverHttp = async (key: string, word: string): Promise<unknown[]> => {
  const read = await app.call('GET', o(key))
  const conflict = await app.call('PUT', o(key), 'x', { headers: { 'if-match': '"other"' } })
  return [
    (await app.call('GET', `/v1/me/memory/list?prefix=${key}`)).json.keys[0].author,
    (await app.call('GET', `/v1/me/memory/search?q=${word}&prefix=${key}`)).json.matches[0].author,
    conflict.json.author,
    { user: read.headers.get('x-br-meta-user'), agent: read.headers.get('x-br-meta-agent'), verified: read.headers.get('x-br-meta-agent-verified') === 'true' },
  ]
}

describe('the author of memory with a label', () => {
  test('HARD-13 list, search, history, conflict and header show the label of a plain key in quotes and as not verified, and an agent as verified', async () => {
    const label = String(agent.id)
    await put('agents/forged.md', 'forged word', app.key, { 'x-br-agent-id': label })
    await put('agents/real.md', 'real word', agent.token)
    const forged = { user: String(app.userId), agent: `"${label}"`, verified: false }
    const real = { user: String(app.userId), agent: label, verified: true }
    expect(await saidOverHttp('agents/forged.md', 'forged')).toEqual([forged, forged, forged, forged])
    expect(await saidOverHttp('agents/real.md', 'real')).toEqual([real, real, real, real])
    const { versions } = (await app.call('GET', '/v1/me/memory/history?key=agents/forged.md')).json
    expect(versions[0].author).toEqual(forged)
    const version = await app.call('GET', `/v1/me/memory/history?key=agents/forged.md&version=${versions[0].version}`)
    expect([version.headers.get('x-br-meta-agent'), version.headers.get('x-br-meta-agent-verified')]).toEqual([`"${label}"`, 'false'])
    expect((await app.call('GET', '/v1/me/memory/history?key=agents/real.md')).json.versions[0].author).toEqual(real)
    const byAgent = (await app.call('GET', `/v1/me/memory/list?author=agent:${label}`)).json.keys.map((entry: { key: string }) => entry.key)
    expect(byAgent).toEqual(['agents/real.md'])
    // The store keeps the label as the client sent it.
    expect(store.objects.get(`org-${app.orgId}/agents/forged.md`)?.metadata['br-agent']).toBe(label)
  })

  test('HARD-13 an object from an earlier version of the gateway, with a label but no name in its metadata, is shown in the same way', async () => {
    store.put(`org-${app.orgId}/agents/old.md`, 'old word')
    const object = store.objects.get(`org-${app.orgId}/agents/old.md`)
    if (object === undefined) throw new Error('the object is there')
    store.objects.set(`org-${app.orgId}/agents/old.md`, { ...object, metadata: { 'br-user': '7', 'br-ts': '2026-01-01T00:00:00.000Z', 'br-agent': '7' } })
    const read = await app.call('GET', o('agents/old.md'))
    expect([read.headers.get('x-br-meta-agent'), read.headers.get('x-br-meta-agent-verified')]).toEqual(['"7"', 'false'])
    const found = (await app.call('GET', '/v1/me/memory/search?q=old&prefix=agents/old.md')).json.matches[0]
    expect(found.author).toEqual({ user: '7', agent: '"7"', verified: false })
  })
})

describe.each(eras)('the author in the tools of the %s', (era, connect) => {
  test('HARD-13 every memory tool distinguishes a label from an agent, in text and in data', async () => {
    const label = String(agent.id)
    const folder = `agents/${era.split(' ')[0]}`
    await put(`${folder}/forged.md`, 'forged word', app.key, { 'x-br-agent-id': label })
    await put(`${folder}/real.md`, 'real word', agent.token)
    const client = await connect()
    for (const [file, agentShown, isVerified, text] of [
      ['forged', `"${label}"`, false, `agent "${label}" (its own word)`],
      ['real', label, true, `agent ${label}`],
    ] as const) {
      const key = `${folder}/${file}.md`
      const author = { user: String(app.userId), agent: agentShown, verified: isVerified }
      const list = await client.call('memory_list', { prefix: key })
      expect(list.data.keys[0].author).toEqual(author)
      const search = await client.call('memory_search', { query: `${file} word`, prefix: key })
      expect(search.data.hits[0].provenance).toMatchObject(author)
      const history = await client.call('memory_history', { key })
      expect(history.data.versions[0].author).toEqual(author)
      const read = await client.call('memory_read', { key })
      expect(read.data.provenance).toMatchObject({ ...author, agent_name: isVerified ? 'lead' : null })
      for (const answer of [list, search, history, read]) {
        expect(answer.text).toContain(text)
        expect(answer.text.includes('its own word')).toBe(!isVerified)
      }
    }
  })
})
