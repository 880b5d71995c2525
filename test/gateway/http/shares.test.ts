/** Places that organisations share: connections, streamed replies, polls, streams of changes. Also replies that nobody reads. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { usageRows } from '../../harness/usage-rows.ts'
import { closeClients, connectV2 } from '../../mcp/raw-clients.ts'

const longMs = 60_000
const chat = '/v1/chat/completions'

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

let app: TestApp
const ends: (() => void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  await closeClients()
  app.alpha.release()
  await app.stop()
})

/** Makes a call over a new connection. `begun` resolves with the head of the reply. */
function ask(
  token: string | null,
  path: string,
  body?: object,
  more: { agent?: Agent; localAddress?: string } = {},
): { begun: Promise<IncomingMessage>; whole: Promise<Answer> } {
  const headers = { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
  const { hostname, port } = new URL(app.baseUrl)
  const sent = request({ hostname, port, path, method: body === undefined ? 'GET' : 'POST', headers, agent: false, ...more })
  ends.push(() => sent.destroy())
  const begun = new Promise<IncomingMessage>((resolve, reject) => sent.on('response', resolve).on('error', reject))
  const whole = begun.then(
    reply =>
      new Promise<Answer>((resolve, reject) => {
        let text = ''
        reply.on('data', chunk => {
          text += chunk
        })
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text })).on('error', reject)
      }),
  )
  begun.catch(() => undefined)
  whole.catch(() => undefined)
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  return { begun, whole }
}

const spoken = (content: string) => ({ model: 'test-model', stream: true, messages: [{ role: 'user', content }] })

async function figure(name: string): Promise<number> {
  const { text } = await ask(null, '/metrics', undefined, { localAddress: '127.0.0.9' }).whole
  const line = text.split('\n').find(each => each.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? Number.NaN)
}

function expectRefusal(answer: Answer, setting: string): void {
  expect([answer.status, answer.headers['retry-after']], answer.text).toEqual([503, '5'])
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'temporarily_unavailable', message: expect.stringContaining(setting) }, limit_name: setting })
}

/** Calls until one call is refused. Returns the number of that call. */
async function untilRefused(call: () => Promise<IncomingMessage | null>, most: number): Promise<number> {
  for (let count = 0; count < most; count++) if ((await call())?.statusCode === 503) return count
  throw new Error(`none of ${most} was refused`)
}

async function keyOf(name: string): Promise<string> {
  const of = { orgId: app.orgId, userId: app.userId, workspaceId: null, name, scope: 'full' as const, rpmLimit: null, dailyLimit: null }
  return (await app.gateway.app.keys.create(of)).key
}

/** Opens a connection that sends the text and reads nothing. */
function unread(text: string, localAddress?: string): Socket {
  const { hostname, port } = new URL(app.baseUrl)
  const socket = connect({ port: Number(port), host: hostname, ...(localAddress === undefined ? {} : { localAddress }) })
  socket.on('error', () => undefined)
  ends.push(() => socket.destroy())
  if (text !== '') socket.write(text)
  return socket
}

describe('places', () => {
  test(
    'HARD-11 when one organisation takes all places that it can get, another still gets its own, and the refusal names the reached bound',
    async () => {
      const env = { CONNECTIONS_MAX: '100', STREAMS_MAX: '60', POLLS_MAX: '20', CHANGE_STREAMS_MAX: '6', FOLDER_STORE: 'on' }
      app = await startApp({ env })
      const other = await app.otherOrg('Neighbours')
      for (const token of [app.key, other.key]) expect((await app.call('PUT', '/v1/me/memory-store', { store: 'folder' }, { token })).status).toBe(200)
      app.alpha.script(({ raw }) => (raw.includes('wait for it') ? { holdAfterChunks: 1 } : {}))
      // Polls: three resources with each credential. Half of 18 is nine.
      const account = ['brigade://budget', 'brigade://usage', 'brigade://whoami']
      const listen = async (token: string, uris: readonly string[]) => (await connectV2(app.baseUrl, token)).listen({ resourceSubscriptions: [...uris] })
      for (const name of ['one', 'two', 'three']) await listen(await keyOf(name), account)
      await expect(listen(await keyOf('four'), account)).rejects.toThrow('POLLS_MAX')
      expect(await figure('brigade_places_held{kind="polls"}')).toBe(9)
      // Streams of changes: the organisation takes all of them.
      for (const name of ['a', 'b', 'c']) await listen(app.key, [`memory://agents/${name}/`])
      await expect(listen(app.key, ['memory://agents/d/'])).rejects.toThrow('CHANGE_STREAMS_MAX')
      // Streamed replies: half of 54. Six of these are streams of changes.
      const streams = await untilRefused(() => ask(app.key, chat, spoken('wait for it')).begun, 40)
      expect(streams).toBe(21)
      expectRefusal(await ask(app.key, chat, spoken('one more')).whole, 'STREAMS_MAX')
      // Kept-alive connections: half of 90.
      const agent = new Agent({ keepAlive: true, maxSockets: 200 })
      ends.push(() => agent.destroy())
      const kept: Socket[] = []
      const head = `GET /v1/models HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${app.key}\r\n\r\n`
      const keep = (): Promise<IncomingMessage | null> =>
        new Promise((resolve, reject) => {
          const socket = unread(head)
          kept.push(socket)
          socket.once('data', chunk => resolve({ statusCode: Number(String(chunk).split(' ')[1]) } as IncomingMessage))
          socket.once('close', () => reject(new Error('closed without an answer')))
        })
      const connections = await untilRefused(keep, 60)
      expect(connections).toBeGreaterThan(5)
      const refused = await ask(app.key, '/v1/models').whole
      expectRefusal(refused, 'CONNECTIONS_MAX')
      expect(refused.headers.connection).toBe('close')

      // The other organisation makes a call, reads a stream to its end, opens a stream of changes, and polls.
      expect((await ask(other.key, '/v1/models').whole).status).toBe(200)
      const said = await ask(other.key, chat, spoken('Hello')).whole
      expect([said.status, said.text.includes('[DONE]')]).toEqual([200, true])
      const client = await connectV2(app.baseUrl, other.key)
      const updates: string[] = []
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => void updates.push(params.uri))
      const { honoredFilter } = await client.listen({ resourceSubscriptions: ['brigade://budget', 'memory://agents/'] })
      expect(honoredFilter.resourceSubscriptions).toEqual(['brigade://budget', 'memory://agents/'])
      expect((await app.call('PUT', '/v1/me/memory/o?key=agents%2Fa.md', 'x', { token: other.key })).status).toBe(200)
      await until(() => updates.includes('memory://agents/'), 'news of the folder')
      for (const kind of ['connections', 'streams', 'polls'])
        expect(await figure(`brigade_places_refused_total{kind="${kind}",reason="share"}`), kind).toBeGreaterThanOrEqual(1)

      // All places are given back.
      for (const end of ends.splice(0)) end()
      await closeClients()
      app.alpha.release()
      await until(async () => (await figure('brigade_places_held{kind="streams"}')) === 0, 'places of streams')
      await until(async () => (await figure('brigade_places_held{kind="polls"}')) === 0, 'places of looks')
      expect((await ask(app.key, chat, spoken('Hello')).whole).status).toBe(200)
    },
    longMs,
  )

  test(
    'HARD-11 connections without a credential share the places by address, so other addresses still get theirs',
    async () => {
      app = await startApp({ env: { CONNECTIONS_MAX: '60' } })
      const silent = Array.from({ length: 150 }, () => unread('', '127.0.0.2'))
      const open = () => silent.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length
      for (const socket of silent) socket.resume()
      // Half of 54 connections have a place. Half of 58 have none but may make one request.
      await until(() => open() === 27 + 29, 'connections of one address', 10_000)
      expect((await ask(app.key, '/v1/models', undefined, { localAddress: '127.0.0.3' }).whole).status).toBe(200)
      expect(await figure('brigade_connections_dropped_total')).toBe(150 - 56)
      for (const end of ends.splice(0)) end()
    },
    longMs,
  )

  test(
    'HARD-11 in a full process a newcomer gets the place of an idle connection of the address with the most, and no running call is closed',
    async () => {
      app = await startApp({ env: { CONNECTIONS_MAX: '20' } })
      app.alpha.script(() => ({ holdAfterChunks: 1 }))
      const busy = ask(app.key, chat, spoken('wait for it'), { localAddress: '127.0.0.2' })
      expect((await busy.begun).statusCode).toBe(200)
      // Four addresses open as many connections as they can and send nothing.
      const silent = [2, 3, 4, 5].map(last => Array.from({ length: 12 }, () => unread('', `127.0.0.${last}`)))
      for (const socket of silent.flat()) socket.resume()
      const open = (sockets: readonly Socket[] | undefined) => sockets?.filter(({ destroyed, readyState }) => !destroyed && readyState === 'open').length ?? 0
      await until(async () => (await figure('brigade_places_held{kind="connections"}')) >= 17, 'all shares are taken')
      const before = open(silent[0])
      const agent = new Agent({ keepAlive: true, maxSockets: 10 })
      ends.push(() => agent.destroy())
      const answers = await Promise.all(Array.from({ length: 3 }, () => ask(null, '/v1/rankings', undefined, { agent, localAddress: '127.0.0.6' }).whole))
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(answers.map(({ headers }) => headers.connection)).toEqual(Array(3).fill('keep-alive'))
      await until(() => open(silent[0]) < before, 'idle connections of the first address are closed')
      app.alpha.release()
      expect((await busy.whole).text).toContain('[DONE]')
    },
    longMs,
  )

  test(
    'HARD-11 a connection without a place is refused at its first request without a credential, gets a place with one, and idle ones end first',
    async () => {
      app = await startApp({ env: { CONNECTIONS_MAX: '20' } })
      const silent = Array.from({ length: 20 }, () => unread(''))
      await Promise.all(silent.map(socket => once(socket, 'connect')))
      expectRefusal(await ask(null, '/v1/rankings').whole, 'CONNECTIONS_MAX')
      expect((await ask(null, '/livez').whole).status).toBe(200)
      const served = await ask(app.key, '/v1/models').whole
      expect([served.status, served.headers.connection]).toEqual([200, 'close'])
      for (const socket of silent) socket.destroy()
      await app.stop()
      // Connections of a trusted proxy have no share. When they take all places, the idle ones among them end to make room.
      app = await startApp({ env: { CONNECTIONS_MAX: '20', TRUSTED_PROXIES: '127.0.0.1' } })
      const agent = new Agent({ keepAlive: true, maxSockets: 200, maxFreeSockets: 200 })
      ends.push(() => agent.destroy())
      const all = await Promise.all(Array.from({ length: 19 }, () => ask(app.key, '/v1/models', undefined, { agent }).whole))
      expect(all.map(({ status }) => status)).toEqual(Array(19).fill(200))
      for (let count = 0; count < 5; count++) expect((await ask(app.key, '/v1/models').whole).status).toBe(200)
    },
    longMs,
  )
})

describe('replies that nobody reads', () => {
  const bytes = 12 * 1024 * 1024
  let aheadMs = 0
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const post = (key: string, body: object): string => {
    const text = JSON.stringify(body)
    return `POST ${chat} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
  }
  const asked = { model: 'test-model', messages: [{ role: 'user', content: 'Tell me all.' }] }

  test(
    'HARD-02 unread replies have a total bound, a share for each organisation and a minimum speed, and only the oldest unread ones are cut',
    async () => {
      aheadMs = 0
      app = await startApp({ clock, env: { UNREAD_MAX_BYTES: String(30 * 1024 * 1024) } })
      const other = await app.otherOrg('Neighbours')
      app.alpha.script(() => ({ chunks: ['x'.repeat(bytes)] }))
      app.beta.script(() => ({ chunks: ['x'.repeat(bytes)] }))
      unread(post(app.key, asked)).pause()
      await until(async () => (await figure('brigade_replies_unread_bytes')) > bytes, 'bytes that wait')
      unread(post(app.key, asked)).pause()
      await until(async () => (await figure('brigade_replies_cut_total{reason="organisation"}')) === 1, 'the first is cut')
      const read = await ask(other.key, chat, asked).whole
      expect([read.status, read.text.length > bytes]).toEqual([200, true])
      aheadMs = 29_000
      expect(await figure('brigade_replies_unread_bytes')).toBeGreaterThan(bytes)
      aheadMs = 2_000_000
      await until(async () => (await figure('brigade_replies_cut_total{reason="slow"}')) >= 1, 'the second is cut')
      await until(async () => (await figure('brigade_replies_unread_bytes')) === 0, 'nothing waits')
      const small = await ask(app.key, '/v1/models').whole
      expect(small.status).toBe(200)
    },
    longMs,
  )

  test(
    'HARD-02 a stream whose client reads nothing is cut at the bound and charged for what was sent',
    async () => {
      aheadMs = 0
      app = await startApp({ clock })
      app.alpha.script(() => ({ chunks: Array.from({ length: 400 }, () => 'word '.repeat(10_000)) }))
      app.beta.script(() => ({ chunks: Array.from({ length: 400 }, () => 'word '.repeat(10_000)) }))
      unread(post(app.key, { ...asked, stream: true })).pause()
      await until(async () => (await figure('brigade_replies_unread_bytes')) > 0, 'bytes that wait', 20_000)
      expect(app.gateway.app.inflight.size).toBe(1)
      aheadMs = 2_000_000
      await until(async () => (await figure('brigade_replies_cut_total{reason="slow"}')) === 1, 'the stream is cut')
      await until(() => app.gateway.app.inflight.size === 0, 'the call has ended')
      const [row] = await usageRows(app)
      expect(row).toMatchObject({ outcome: 'client_gone', estimated: true })
      expect(row?.costUinr).toBeGreaterThan(0n)
    },
    longMs,
  )

  test(
    'HARD-02 a second request before the end of the first reply ends the connection, because no bound covers a reply that waits for another',
    async () => {
      aheadMs = 0
      app = await startApp({ clock })
      app.alpha.script(() => ({ holdAfterChunks: 1 }))
      app.beta.script(() => ({ holdAfterChunks: 1 }))
      const socket = unread(post(app.key, { ...asked, stream: true, messages: [{ role: 'user', content: 'wait for it' }] }))
      await once(socket, 'data')
      expect(app.gateway.app.inflight.size).toBe(1)
      const dialed = app.alpha.requests.length + app.beta.requests.length
      const closed = once(socket, 'close')
      socket.write(post(app.key, asked).repeat(50))
      await closed
      await until(() => app.gateway.app.inflight.size === 0, 'the call has ended')
      expect(app.alpha.requests.length + app.beta.requests.length).toBe(dialed)
    },
    longMs,
  )

  test(
    'HARD-02 data that is not HTTP gets no answer in the middle of a reply',
    async () => {
      aheadMs = 0
      app = await startApp({ clock })
      app.alpha.script(() => ({ holdAfterChunks: 1 }))
      app.beta.script(() => ({ holdAfterChunks: 1 }))
      const socket = unread(post(app.key, { ...asked, stream: true, messages: [{ role: 'user', content: 'wait for it' }] }))
      let text = ''
      socket.on('data', chunk => {
        text += chunk
      })
      await until(() => text.includes('HTTP/1.1 200'), 'the reply has begun')
      const closed = once(socket, 'close')
      socket.write('no request at all\r\n\r\n')
      await closed
      expect(text).not.toContain('400 Bad Request')
    },
    longMs,
  )
})
