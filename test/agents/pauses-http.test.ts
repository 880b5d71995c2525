/** Agents that people, or agents above them, pause for a while. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { familyOf, type Member, said } from './family.ts'

describe('paused agents', () => {
  let app: TestApp
  let family: ReturnType<typeof familyOf>
  beforeAll(async () => {
    app = await startApp()
    family = familyOf(app)
  })
  afterAll(() => app.stop())
  beforeEach(() => {
    for (const upstream of [app.alpha, app.beta, app.indus]) upstream.reset()
  })

  const act = (what: 'pause' | 'resume', id: number, token = app.key) => app.call('POST', `/v1/me/agents/${id}/${what}`, undefined, { token })
  const below = (parent: Member, childId: number, what: 'pause' | 'resume' | 'revoke') =>
    app.call('POST', `/v1/me/agents/${parent.id}/children/${childId}/${what}`, undefined, { token: parent.token })
  const paused = [403, 'agent_paused']

  test('EDGE-20 a paused agent and all agents below it get 403 agent_paused everywhere, and running streams are cut. After the resume, the same tokens work', async () => {
    const parent = await family.lead()
    const child = await family.born(parent)
    app.alpha.script([{ chunks: Array(20).fill('word '), holdAfterChunks: 3 }])
    const running = family.chat(child.token, { stream: true })
    await app.alpha.arrived(1)
    const done = await act('pause', parent.id)
    expect([done.status, done.json]).toMatchObject([200, { ok: true, id: parent.id, status: 'paused' }])
    expect((await running).text).toContain('"agent_paused"')
    await until(() => app.alpha.requests[0]?.aborted === true)
    app.alpha.release()
    app.alpha.reset()
    for (const { id, token } of [parent, child]) {
      expect(said(await family.chat(token))).toEqual(paused)
      expect(said(await app.call('GET', '/v1/me/whoami', undefined, { token }))).toEqual(paused)
      expect(said(await app.call('GET', '/me', undefined, { token }))).toEqual(paused)
      expect(
        said(await app.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { token, headers: { accept: 'application/json, text/event-stream' } })),
      ).toEqual(paused)
      // A plain key that names the agent is refused too.
      expect(said(await family.chat(app.key, {}, { 'x-br-agent-id': String(id) }))).toEqual(paused)
      const form = new URLSearchParams({ token }).toString()
      const seen = await app.call('POST', '/oauth/introspect', form, { headers: { 'content-type': 'application/x-www-form-urlencoded' } })
      expect(seen.json).toEqual({ active: false })
    }
    expect(app.alpha.requests).toHaveLength(0)
    expect((await act('pause', parent.id)).json.status, 'again is fine').toBe('paused')
    expect((await family.listed(parent.id)).status).toBe('paused')
    expect((await family.listed(child.id)).status, 'the child itself is not').toBe('active')
    expect((await act('resume', parent.id)).json).toMatchObject({ ok: true, status: 'active' })
    for (const { token } of [parent, child]) expect((await family.chat(token)).status).toBe(200)
  })

  test('EDGE-20 a parent pauses, resumes and ends its children and grandchildren with its own token', async () => {
    const parent = await family.lead()
    const child = await family.born(parent, { may_delegate: true })
    const grandchild = await family.born(child)
    for (const each of [child, grandchild]) {
      expect((await below(parent, each.id, 'pause')).json).toMatchObject({ ok: true, id: each.id, status: 'paused' })
      expect(said(await family.chat(each.token))).toEqual(paused)
      expect((await family.chat(parent.token)).status, 'the parent goes on').toBe(200)
      expect((await below(parent, each.id, 'resume')).json).toMatchObject({ ok: true, status: 'active' })
      expect((await family.chat(each.token)).status).toBe(200)
    }
    expect((await below(parent, child.id, 'revoke')).json).toMatchObject({ ok: true, id: child.id, status: 'revoked' })
    for (const each of [child, grandchild]) expect((await family.chat(each.token)).json.reason).toBe('agent_revoked')
    expect((await family.listed(grandchild.id)).status).toBe('revoked')
    expect((await family.chat(parent.token)).status).toBe(200)
  })

  test('EDGE-20 when several agents of a family pause one agent, the pause of the highest one counts', async () => {
    const parent = await family.lead()
    const child = await family.born(parent, { may_delegate: true })
    const grandchild = await family.born(child)
    expect((await below(child, grandchild.id, 'pause')).json.status).toBe('paused')
    expect((await below(parent, grandchild.id, 'pause')).json.status, 'the same pause, by one further up').toBe('paused')
    expect(said(await below(child, grandchild.id, 'resume'))).toEqual([403, 'forbidden'])
    expect((await below(child, grandchild.id, 'pause')).json.status, 'which one further down does not weaken').toBe('paused')
    expect(said(await below(child, grandchild.id, 'resume'))).toEqual([403, 'forbidden'])
    expect((await below(parent, grandchild.id, 'resume')).json.status).toBe('active')
    expect((await below(child, grandchild.id, 'pause')).json.status).toBe('paused')
    expect((await below(child, grandchild.id, 'resume')).json.status, 'its own pause').toBe('active')
    expect((await below(child, grandchild.id, 'pause')).json.status).toBe('paused')
    expect((await below(parent, grandchild.id, 'resume')).json.status, 'and a pause of one below').toBe('active')
  })

  test('EDGE-20 an agent cannot pause or end itself, its parent, a sibling, an unrelated agent or an agent of another organisation', async () => {
    const parent = await family.lead()
    const [child, sibling] = [await family.born(parent, { may_delegate: true }), await family.born(parent)]
    const stranger = await family.lead()
    const other = await app.otherOrg('Other Pauses')
    const foreign = (await app.call('POST', '/v1/me/agents', { name: 'foreign' }, { token: other.key })).json
    for (const what of ['pause', 'resume', 'revoke'] as const) {
      for (const id of [child.id, parent.id, sibling.id, stranger.id, foreign.id, 999_999])
        expect(said(await below(child, id, what)), `${what} ${id}`).toEqual([404, 'not_found'])
      // The URL names another agent as the parent.
      expect(said(await app.call('POST', `/v1/me/agents/${parent.id}/children/${sibling.id}/${what}`, undefined, { token: child.token }))).toEqual([
        403,
        'forbidden',
      ])
      expect(said(await app.call('POST', `/v1/me/agents/${parent.id}/children/${child.id}/${what}`, undefined)), 'a key has rows of its own').toEqual([
        403,
        'forbidden',
      ])
      expect(said(await app.call('POST', `/v1/me/agents/${sibling.id}/${what}`, undefined, { token: parent.token }))).toEqual([403, 'forbidden'])
      expect(said(await act(what === 'resume' ? 'resume' : 'pause', foreign.id))).toEqual([404, 'not_found'])
    }
    const narrow = (await family.mint(parent.id, { scope: 'usage:read' })).json.access_token
    expect(said(await below({ id: parent.id, token: narrow }, child.id, 'pause'))).toEqual([403, 'forbidden'])
    for (const { token } of [parent, child, sibling, stranger]) expect((await family.chat(token)).status).toBe(200)
  })

  test('EDGE-20 a parent cannot resume a child that a person paused, and a revoked agent can be neither paused nor resumed', async () => {
    const parent = await family.lead()
    const child = await family.born(parent)
    await below(parent, child.id, 'pause')
    expect((await act('pause', child.id)).status).toBe(200)
    const refused = await below(parent, child.id, 'resume')
    expect([...said(refused), refused.json.error.message]).toEqual([403, 'forbidden', expect.stringContaining(`POST /v1/me/agents/${child.id}/resume`)])
    expect(said(await family.chat(child.token))).toEqual(paused)
    expect((await act('resume', child.id)).status).toBe(200)
    expect((await family.chat(child.token)).status).toBe(200)
    await below(parent, child.id, 'revoke')
    for (const what of ['pause', 'resume'] as const) {
      expect(said(await act(what, child.id))).toEqual([409, 'agent_revoked'])
      expect(said(await below(parent, child.id, what))).toEqual([409, 'agent_revoked'])
    }
  })
})
