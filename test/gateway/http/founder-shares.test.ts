/**
 * All organisations of one person together have one share of the resources of a process: bodies, connections, streamed replies, polls, streams of changes.
 */
import { Agent, type IncomingMessage, request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../harness/app.ts'
import { until } from '../../harness/until.ts'
import { closeClients, connectV2 } from '../../mcp/raw-clients.ts'

const longMs = 60_000
const KiB = 1024
const MiB = KiB * KiB
const chat = '/v1/chat/completions'

let app: TestApp
const ends: (() => void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) end()
  await closeClients()
  app.alpha.release()
  await app.stop()
})

/** Starts the app. Returns keys of four organisations of one person, and a key of another person. */
async function startWithFounder(env: Record<string, string>): Promise<{ keys: readonly string[]; other: string }> {
  app = await startApp({ env })
  const cookie = await app.signIn()
  const keys = [app.key]
  for (const name of ['First', 'Second', 'Third']) {
    const made = await app.call('POST', '/me/orgs', { name }, { cookie })
    expect((await app.call('POST', '/me/orgs/switch', { org_id: made.json.id }, { cookie })).status).toBe(200)
    keys.push((await app.call('POST', '/me/keys', { name }, { cookie })).json.key)
  }
  const { key } = await app.otherOrg('Neighbours')
  for (const token of [...keys, key]) expect((await app.call('GET', '/v1/models', undefined, { token })).status).toBe(200)
  return { keys, other: key }
}

/** Sends a request and resolves with the head of the answer. The body is announced in full, but only `sent` bytes of it are sent. */
function ask(token: string, path: string, body: Buffer | null, { agent, sent }: { agent?: Agent; sent?: number } = {}): Promise<IncomingMessage> {
  const { hostname, port } = new URL(app.baseUrl)
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
  }
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method: body === null ? 'GET' : 'POST', headers, agent: agent ?? false }, resolve)
    ends.push(() => asked.destroy())
    asked.on('error', reject)
    if (body === null) asked.end()
    else if (sent === undefined) asked.end(body)
    else asked.write(body.subarray(0, sent))
  })
}

const spoken = (content: string): Buffer => Buffer.from(JSON.stringify({ model: 'test-model', stream: true, messages: [{ role: 'user', content }] }))

async function figure(name: string): Promise<number> {
  const line = (await app.call('GET', '/metrics', undefined, { token: null })).text.split('\n').find(each => each.startsWith(`${name} `))
  return Number(line?.split(' ')[1] ?? Number.NaN)
}

/** Calls with one key after the other until one call is refused. Returns the number of accepted calls. */
async function takenInTurn(keys: readonly string[], call: (key: string) => Promise<boolean>): Promise<number> {
  for (let count = 0; count < 100; count++) if (!(await call(keys[count % keys.length] ?? ''))) return count
  throw new Error('none was refused')
}

describe('several organisations of one person', () => {
  test(
    'HARD-11 the organisations of one person together have one share of the streamed replies, and another person still gets a whole share',
    async () => {
      const { keys, other } = await startWithFounder({ STREAMS_MAX: '60' })
      app.alpha.script(({ raw }) => (raw.includes('wait for it') ? { holdAfterChunks: 1 } : {}))
      const stream = async (key: string): Promise<boolean> => (await ask(key, chat, spoken('wait for it'))).statusCode === 200
      // The first person gets half of 54, and the second gets half of the rest.
      expect(await takenInTurn(keys, stream)).toBe(27)
      for (const key of keys) expect(await stream(key)).toBe(false)
      expect(await takenInTurn([other], stream)).toBe(13)
    },
    longMs,
  )

  test(
    'HARD-11 the organisations of one person together have one share of the connections, and another person still gets a whole share',
    async () => {
      const { keys, other } = await startWithFounder({ CONNECTIONS_MAX: '100' })
      const agent = new Agent({ keepAlive: true, maxSockets: 300 })
      ends.push(() => agent.destroy())
      app.alpha.script(({ raw }) => (raw.includes('wait for it') ? { holdAfterChunks: 1 } : {}))
      const connected = async (key: string): Promise<boolean> => (await ask(key, chat, spoken('wait for it'), { agent })).statusCode === 200
      const taken = await takenInTurn(keys, connected)
      expect(taken).toBeLessThanOrEqual(45)
      expect(taken).toBeGreaterThan(40)
      for (const key of keys) expect(await connected(key)).toBe(false)
      for (let count = 0; count < 15; count++) expect(await connected(other)).toBe(true)
    },
    longMs,
  )

  test(
    'HARD-02 the organisations of one person together have one share of the room for bodies, and another person still has room',
    async () => {
      const limits = { INFERENCE_BODY_LIMIT_BYTES: String(MiB), FORM_LIMIT_BYTES: String(MiB), BODIES_MAX_BYTES: String(4 * MiB), BODIES_ORG_PERCENT: '25' }
      const { keys, other } = await startWithFounder(limits)
      const body = Buffer.alloc(600 * KiB, ' ')
      const waiting = ask(keys[0] ?? '', chat, body, { sent: body.length - 1 }).catch(() => null)
      await until(async () => (await figure('brigade_request_bodies_bytes')) >= body.length - 1, 'bytes of bodies')
      for (const key of keys.slice(1)) {
        const refused = await ask(key, chat, body)
        expect(refused.statusCode).toBe(503)
      }
      expect((await ask(other, chat, Buffer.concat([body, spoken('Hello')]))).statusCode).toBe(200)
      for (const end of ends.splice(0)) end()
      await waiting
      await until(async () => (await figure('brigade_request_bodies_bytes')) === 0, 'bytes of bodies')
    },
    longMs,
  )

  test(
    'HARD-11 the organisations of one person together have one share of the polls, and lose streams of changes to another person',
    async () => {
      const { keys, other } = await startWithFounder({ POLLS_MAX: '20', CHANGE_STREAMS_MAX: '6' })
      const account = ['brigade://budget', 'brigade://usage', 'brigade://whoami']
      const listen = async (token: string, uris: readonly string[]) => (await connectV2(app.baseUrl, token)).listen({ resourceSubscriptions: [...uris] })
      for (const key of keys.slice(0, 3)) await listen(key, account)
      await expect(listen(keys[3] ?? '', account.slice(0, 1))).rejects.toThrow('POLLS_MAX')
      expect(await figure('brigade_places_held{kind="polls"}')).toBe(9)
      await listen(other, account)
      // Two more streams fill the process.
      for (const key of keys.slice(0, 2)) await listen(key, account)
      // No single organisation has two streams more than the newcomer, but the founder of these organisations does.
      for (let count = 0; count < 2; count++) await listen(other, account)
    },
    longMs,
  )
})
