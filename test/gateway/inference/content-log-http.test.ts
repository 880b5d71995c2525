import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { adminHandler } from '../../../src/operations/admin/commands/admin-commands.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'

const countRows = statement<[], { count: number }>('test.count_content', `select count(*)::int as count from content_log`)
const setWindow = statement<[orgId: number, days: number]>('test.set_window', `update orgs set retention_days = $2::int where id = $1::int`)

const dayMs = 24 * 3600_000
const prompt = 'the umbrella is vermilion today'

describe('content that an organisation keeps', () => {
  const clock = movableClock()
  let app: TestApp
  let cookie: string

  beforeAll(async () => {
    app = await startApp({ clock })
    cookie = await app.signIn()
  })
  beforeEach(async () => {
    app.alpha.reset()
    await window(0)
  })
  afterAll(() => app.stop())

  const window = async (days: number) => {
    expect((await app.call('PUT', '/me/org/data-retention', { days }, { cookie })).status).toBe(200)
  }
  const chat = (more: object = {}, options: Parameters<TestApp['call']>[3] = {}) =>
    app.call('POST', '/v1/chat/completions', { model: 'alpha-only', messages: [{ role: 'user', content: prompt }], ...more }, options)
  const idOf = (reply: { headers: Headers }) => reply.headers.get('x-request-id') ?? ''
  // biome-ignore lint/suspicious/noExplicitAny: the command answers JSON.
  const read = (request: string, org = app.orgId) => adminHandler(app.gateway.app)({ name: 'content', args: { org, request } }) as Promise<any>
  const rows = async () => {
    await app.gateway.app.contentLog.flush()
    return (await app.db.one(countRows)).count
  }

  test('CHAT-34 content is deleted when it is older than the retention window, and closing the window deletes all content and keeps no more', async () => {
    await window(7)
    const first = await chat()
    const found = await read(idOf(first))
    expect(found).toMatchObject({ request_id: idOf(first), key_id: app.keyId, model: 'alpha-only', request_truncated: false, reply_truncated: false })
    expect(JSON.parse(found.request)).toEqual({ model: 'alpha-only', messages: [{ role: 'user', content: prompt }] })
    expect(found.reply).toBe(first.text)

    clock.advance(3 * dayMs)
    const second = await chat()
    clock.advance(4 * dayMs)
    await expect(read(idOf(first))).rejects.toThrow('no content')
    expect(JSON.parse((await read(idOf(second))).reply)).toEqual(second.json)
    expect(await rows()).toBe(2)
    await app.gateway.app.jobs.runOnce('content.expire')
    expect(await rows()).toBe(1)

    await window(3)
    await expect(read(idOf(second))).rejects.toThrow('no content')
    expect(await rows()).toBe(0)

    await window(30)
    const third = await chat()
    expect(await rows()).toBe(1)
    await window(0)
    expect(await rows()).toBe(0)
    const fourth = await chat()
    expect(await rows()).toBe(0)
    await window(30)
    for (const reply of [third, fourth]) await expect(read(idOf(reply))).rejects.toThrow('no content')
  })

  test('without a retention window, neither the database nor the log contains content', async () => {
    await chat()
    await chat({ stream: true })
    await app.gateway.app.limits.flushNow()
    expect(await rows()).toBe(0)
    expect(await app.dump()).not.toContain('vermilion')
    expect(app.logLines.join('\n')).not.toContain('vermilion')
  })

  test('with a retention window, content is encrypted and is in no other table and no log line', async () => {
    await window(7)
    const reply = await chat({ upstream_key: 'sk-callers-own-key-0001', provider: 'alpha', optimize: 'price' })
    expect(reply.status).toBe(200)
    await app.gateway.app.limits.flushNow()
    expect(await rows()).toBe(1)
    const dump = await app.dump()
    for (const text of [dump, app.logLines.join('\n')]) {
      expect(text).not.toContain('vermilion')
      expect(text).not.toContain('sk-callers-own-key-0001')
    }
    const found = await read(idOf(reply))
    expect(found.request).toContain(prompt)
    for (const field of ['upstream_key', 'sk-callers-own-key-0001', 'optimize']) expect(JSON.stringify(found)).not.toContain(field)
  })

  test('a stream is kept as the client received it, even if the client disconnects', async () => {
    await window(7)
    const whole = await chat({ stream: true, stream_options: { include_usage: false } })
    expect((await read(idOf(whole))).reply).toBe(whole.text)
    expect(whole.text).toContain('[DONE]')

    app.alpha.script({ holdAfterChunks: 2 })
    const leaving = new AbortController()
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'alpha-only', stream: true, messages: [{ role: 'user', content: prompt }] }),
      signal: leaving.signal,
    })
    const reader = response.body?.getReader()
    let seen = ''
    while (!seen.includes(' from')) seen += Buffer.from((await reader?.read())?.value ?? []).toString('utf8')
    leaving.abort()
    await until(async () => (await rows()) === 2)
    app.alpha.release()
    const { reply } = await read(response.headers.get('x-request-id') ?? '')
    expect(reply).toContain(' from')
    expect(reply).not.toContain('[DONE]')
  })

  test('refusals of a provider and failed calls are also kept, but not calls that reached no provider', async () => {
    await window(7)
    app.alpha.script({ status: 422, body: { error: { message: 'too hot', code: 'hot' } } })
    const refused = await chat()
    expect(refused.status).toBe(422)
    expect((await read(idOf(refused))).reply).toBe(refused.text)
    app.alpha.script({ status: 500 })
    const failed = await chat()
    expect(failed.status).toBe(502)
    expect(JSON.parse((await read(idOf(failed))).reply)).toEqual(failed.json)
    const unknown = await chat({ model: 'no-such-model' })
    await expect(read(idOf(unknown))).rejects.toThrow('no content')
    expect(await rows()).toBe(2)
  })

  test('request and reply are each cut at 1 MiB and marked as cut', async () => {
    await window(7)
    app.alpha.script({ chunks: ['y'.repeat(1_200_000)] })
    const plain = await chat({ messages: [{ role: 'user', content: 'x'.repeat(1_200_000) }] })
    const found = await read(idOf(plain))
    expect([found.request.length, found.request_truncated, found.reply.length, found.reply_truncated]).toEqual([1024 * 1024, true, 1024 * 1024, true])
    const routed = await chat({ provider: 'alpha', messages: [{ role: 'user', content: 'x'.repeat(1_200_000) }] })
    const second = await read(idOf(routed))
    expect([second.request.length, second.request_truncated, second.reply_truncated]).toEqual([1024 * 1024, true, false])
  })

  test('large bodies in running calls of one organisation do not prevent the content of another from being kept', async () => {
    await window(7)
    const other = await app.otherOrg('Large Bodies')
    const otherCookie = await app.signIn(other.userId, other.orgId)
    const otherWindow = (days: number) => app.call('PUT', '/me/org/data-retention', { days }, { cookie: otherCookie })
    expect((await otherWindow(1)).status).toBe(200)
    app.alpha.script(request => (request.json?.['stream'] === true ? { holdAfterChunks: 1 } : {}))
    const pad = 'x'.repeat(17 * 1024 * 1024)
    const running = [1, 2].map(() => chat({ provider: 'alpha', stream: true, pad }, { token: other.key }))
    await app.alpha.arrived(2, 20_000)
    const found = await read(idOf(await chat()))
    expect(found.request).toContain(prompt)
    app.alpha.release()
    for (const reply of await Promise.all(running)) {
      const { request, request_truncated } = await read(idOf(reply), other.orgId)
      const sent = JSON.stringify({ model: 'alpha-only', messages: [{ role: 'user', content: prompt }], stream: true, pad })
      expect([request === sent.slice(0, 1024 * 1024), request_truncated]).toEqual([true, true])
    }
    await otherWindow(0)
  }, 60_000)

  test('a parsed body counts with the memory that its values occupy, so dense bodies of one organisation are dropped before they fill the process', async () => {
    await window(7)
    const other = await app.otherOrg('Dense Bodies')
    const otherCookie = await app.signIn(other.userId, other.orgId)
    expect((await app.call('PUT', '/me/org/data-retention', { days: 1 }, { cookie: otherCookie })).status).toBe(200)
    app.alpha.script(request => (request.json?.['stream'] === true ? { holdAfterChunks: 1 } : {}))
    // 70,000 empty objects have 210 KB of text and occupy 4.5 MB.
    const pad = Array.from({ length: 70_000 }, () => ({}))
    const running = Array.from({ length: 16 }, () => chat({ provider: 'alpha', stream: true, pad }, { token: other.key }))
    await app.alpha.arrived(16, 30_000)
    expect((await read(idOf(await chat()))).request).toContain(prompt)
    app.alpha.release()
    await Promise.all(running)
    await app.gateway.app.contentLog.flush()
    const dropped = app.logLines
      .map(line => JSON.parse(line))
      .filter(({ msg, event, orgId }) => [msg, event].includes('content_log_dropped') && orgId === other.orgId)
    expect(dropped.reduce((sum, { count }) => sum + count, 0)).toBeGreaterThanOrEqual(8)
    expect((await app.call('PUT', '/me/org/data-retention', { days: 0 }, { cookie: otherCookie })).status).toBe(200)
  }, 60_000)

  test('content in memory when the window closes is not written, even when a new window opens', async () => {
    await window(7)
    app.alpha.script({ holdAfterChunks: 1 })
    const running = chat({ stream: true })
    await app.alpha.arrived(1)
    await window(0)
    await window(7)
    app.alpha.release()
    const reply = await running
    expect(reply.text).toContain('[DONE]')
    expect(await rows()).toBe(0)
    // The window is closed directly in the database, without a notification to this process. The insert itself checks the window.
    app.alpha.script({ holdAfterChunks: 1 })
    app.alpha.requests.length = 0
    const other = chat({ stream: true })
    await app.alpha.arrived(1)
    await app.db.exec(setWindow, app.orgId, 0)
    app.alpha.release()
    await other
    expect(await rows()).toBe(0)
  })

  test('the operator reads the content of one organisation at a time, and every read writes a line into the audit trail', async () => {
    await window(7)
    const reply = await chat()
    const other = await app.otherOrg('Other Content')
    await expect(read(idOf(reply), other.orgId)).rejects.toThrow('no content')
    await read(idOf(reply))
    const lines = (await app.dump()).split('\n').filter(line => line.includes('readContent') && line.includes(idOf(reply)))
    expect(lines).toHaveLength(2)
    expect(lines[0]).toContain(',operator,')
    expect(lines.map(line => /,(ok|not_found)\)$/.exec(line)?.[1])).toEqual(['not_found', 'ok'])
    expect(JSON.stringify(lines)).not.toContain('vermilion')
  })

  test('the content of embeddings is kept like that of chats', async () => {
    await window(7)
    const reply = await app.call('POST', '/v1/embeddings', { model: 'test-embed', input: prompt })
    expect(await read(idOf(reply))).toMatchObject({ model: 'test-embed', request: expect.stringContaining(prompt), reply: reply.text })
  })
})
