/** The end of a run over HTTP: running calls are cut, and later ones are refused. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, type TestReply } from '../../harness/app.ts'

const hello = [{ role: 'user', content: 'Hello there' }]

describe('the end of a run', () => {
  let app: TestApp
  beforeAll(async () => {
    app = await startApp()
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const chat = (run: string | null, { token = app.key, headers = {}, body = {} }: { token?: string; headers?: Record<string, string>; body?: object } = {}) =>
    app.call(
      'POST',
      '/v1/chat/completions',
      { model: 'alpha-only', messages: hello, ...body },
      { token, headers: { ...(run === null ? {} : { 'x-br-run-id': run }), ...headers } },
    )
  const end = (run: string, query = '', token = app.key) => app.call('POST', `/v1/me/runs/${run}/end${query}`, undefined, { token })
  const endAs = (cookie: string, run: string, query: string) => app.call('POST', `/me/runs/${run}/end${query}`, undefined, { cookie })
  const stateOf = async (run: string, query = '') => (await app.call('GET', `/v1/me/runs/${run}${query}`)).json
  const ended = ({ status, json, headers }: TestReply, run: string): void => {
    expect([status, json.error.code, json.scope, json.run_id, headers.get('x-should-retry')]).toEqual([403, 'run_ended', 'run', run, 'false'])
  }

  test('the end of a run cuts its running calls and refuses later ones with run_ended, and a revoked agent ends its runs', async () => {
    const agent = await app.newAgent('run ender')
    // Two running calls of the run, and one of another run of the same key.
    app.alpha.hold()
    const whole = chat('ends')
    const other = chat('goes-on')
    await app.alpha.arrived(2)
    const stream = chat('ends', { body: { stream: true } })
    await app.alpha.arrived(3)
    expect((await end('ends', `?key_id=${app.keyId}`)).json).toMatchObject({ ok: true, run_id: 'ends', key_id: app.keyId, agent_id: null, state: 'ended' })
    ended(await whole, 'ends')
    expect((await whole).headers.get('x-br-run-id')).toBe('ends')
    expect([(await stream).status, (await stream).json.error.code]).toEqual([403, 'run_ended'])
    app.alpha.release()
    expect((await other).status).toBe(200)
    const dialed = app.alpha.requests.length
    ended(await chat('ends'), 'ends')
    ended(
      await app
        .call('POST', '/v1/messages', { model: 'alpha-only', max_tokens: 5, messages: hello }, { headers: { 'x-claude-code-session-id': 'ends' } })
        .then(asChat),
      'ends',
    )
    expect(app.alpha.requests).toHaveLength(dialed)
    expect((await chat('goes-on')).status).toBe(200)
    // The same id of an agent is another run.
    expect((await chat('ends', { token: agent.token })).status).toBe(200)
    expect(await stateOf('ends')).toMatchObject({ state: 'ended', ended_by: { kind: 'key', id: app.keyId }, ended_at: expect.any(String) })
    expect(await stateOf('ends', `?agent_id=${agent.id}`)).toMatchObject({ state: 'active', ended_at: null, ended_by: null })
    // A stream that flows is cut with an error frame.
    app.alpha.script([{ holdAfterChunks: 2 }])
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json', 'x-br-run-id': 'flows' },
      body: JSON.stringify({ model: 'alpha-only', messages: hello, stream: true }),
    })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    await reader.read()
    await end('flows', `?key_id=${app.keyId}`)
    let rest = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) rest += Buffer.from(part.value).toString()
    expect(rest).toContain('run_ended')
    app.alpha.release()
    // A second end changes nothing.
    const again = (await end('ends', `?key_id=${app.keyId}`)).json
    expect(again.ended_at).toBe((await stateOf('ends')).ended_at)

    // A revoked agent ends its runs.
    app.alpha.hold()
    const before = app.alpha.requests.length
    const running = chat('ends', { token: agent.token })
    await app.alpha.arrived(before + 1)
    await app.call('POST', `/v1/me/agents/${agent.id}/revoke`)
    expect((await running).status).toBe(401)
    app.alpha.release()
    expect(await stateOf('ends', `?agent_id=${agent.id}`)).toMatchObject({ state: 'ended', ended_at: null })
    expect([401, 403]).toContain((await chat('ends', { token: agent.token })).status)
  })

  test('a run is ended before its first call has ended, also by the claim of a token and for the children of its agent', async () => {
    const { json: lead } = await app.call('POST', '/v1/me/agents', { name: 'claim lead', may_delegate: true })
    const { json: minted } = await app.call('POST', `/v1/me/agents/${lead.id}/token`, { run: 'claim' })
    const { json: child } = await app.call('POST', `/v1/me/agents/${lead.id}/children`, { name: 'claim child' }, { token: minted.access_token })
    expect((await end('claim')).status).toBe(404)
    app.alpha.hold()
    const running = chat(null, { token: child.access_token })
    await app.alpha.arrived(1)
    expect((await end('claim', `?agent_id=${child.agent.id}`)).json).toMatchObject({ agent_id: lead.id, state: 'ended' })
    expect((await running).json.error.code).toBe('run_ended')
    app.alpha.release()
    for (const token of [minted.access_token, child.access_token]) ended(await chat(null, { token }), 'claim')
    // A key that acts for the agent meets the same run.
    ended(await chat('claim', { headers: { 'x-br-agent-id': String(lead.id) } }), 'claim')
  })

  test('full keys, and the people who may act on its agent or key, end a run, and nobody ends one of another organisation', async () => {
    const member = await app.newMember('member')
    const admin = await app.newMember('admin')
    const agent = await app.newAgent('guarded')
    await chat('guarded', { token: agent.token })
    await chat('of-key')
    const query = `?agent_id=${agent.id}`
    expect((await endAs(member.cookie, 'guarded', query)).status).toBe(403)
    expect((await endAs(member.cookie, 'of-key', `?key_id=${app.keyId}`)).status).toBe(403)
    expect((await end('guarded', query, agent.token)).status).toBe(403)
    expect((await end('guarded', query, (await app.newKey({ scope: 'inference' })).key)).status).toBe(403)
    const other = await app.otherOrg('Enders')
    for (const of of [query, `?key_id=${app.keyId}`, '']) expect((await end('guarded', of, other.key)).status, of).toBe(404)
    expect((await end('never-used')).status).toBe(404)
    expect((await end('guarded', `${query}&key_id=${app.keyId}`)).status).toBe(400)
    expect((await chat('guarded', { token: agent.token })).status).toBe(200)
    expect((await endAs(admin.cookie, 'guarded', query)).json).toMatchObject({ state: 'ended', ended_by: { kind: 'person', id: admin.userId } })
    ended(await chat('guarded', { token: agent.token }), 'guarded')
    const { json } = await app.call('GET', '/me/audit?limit=5', undefined, { cookie: await app.signIn() })
    expect(json.entries.map((entry: { act: string }) => entry.act)).toContain('endRun')
  })
})

/** The error of the messages API without the place where that format has it. */
function asChat(reply: TestReply): TestReply {
  return { ...reply, json: { ...reply.json, error: { ...reply.json.error, code: reply.json.error.code ?? 'run_ended' } } }
}
