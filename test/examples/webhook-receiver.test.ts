/** examples/webhook-receiver as its user runs it, against a gateway that delivers. */
import { createHmac } from 'node:crypto'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { type StartedProgram, startProgram } from '../harness/started-program.ts'

const program = fileURLToPath(new URL('../../examples/webhook-receiver/receiver.mjs', import.meta.url))

/** A port that is free now. */
function freePort(): Promise<number> {
  return new Promise(done => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

let app: TestApp
let url: string
let webhookId: number
let secret: string
let cookie: string
let receiver: StartedProgram
beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  app = await startApp({ env: { OUTBOUND_ALLOW: `127.0.0.1:${port}`, WEBHOOK_POLL_MS: '50' } })
  cookie = await app.signIn()
  const made = await app.call('POST', '/me/webhooks', { url, event_types: ['key.created'] }, { cookie })
  expect(made.status).toBe(201)
  webhookId = made.json.id
  secret = made.json.secret
  receiver = startProgram(process.execPath, [program], { env: { WEBHOOK_SECRET: secret, PORT: String(port) } })
  await until(() => receiver.out().includes(`listens at ${url}`))
})
afterAll(async () => {
  receiver?.child.kill('SIGKILL')
  await app?.stop()
})

const lines = (): string[] =>
  receiver
    .out()
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('listens'))
const deliveries = async () => (await app.call('GET', `/me/webhooks/${webhookId}/deliveries`, undefined, { cookie })).json.deliveries
const signed = (body: string, atS: number, key = secret) => ({
  'x-br-signature': `t=${atS},v1=${createHmac('sha256', key).update(`${atS}.${body}`).digest('hex')}`,
  'x-br-delivery-id': 'dlv_00000000000000000000000000000001',
})

test('it handles what the gateway sends, once, also when it is sent again', async () => {
  const { key_id } = await app.call('POST', '/me/keys', { name: 'heard' }, { cookie }).then(({ json }) => ({ key_id: json.id }))
  await until(() => lines().length === 1)
  expect(lines()[0]).toMatch(new RegExp(`^handled key\\.created evt_[0-9a-f]{32} .*"key_id":${key_id}`))
  await until(async () => (await deliveries())[0].status === 'acknowledged')
  const [delivery] = await deliveries()
  expect((await app.call('POST', `/me/webhooks/${webhookId}/deliveries/${delivery.id}/redeliver`, {}, { cookie })).status).toBe(200)
  await until(() => lines().length === 2)
  expect(lines()[1]).toBe(`seen before: ${delivery.id}`)
})

test('what is forged, old or rewritten is refused; what could not be handled is asked for again', async () => {
  const before = lines().length
  const nowS = Math.floor(Date.now() / 1000)
  const body = JSON.stringify({ id: 'evt_1', type: 'ping', data: {} })
  const post = async (text: string, headers: Record<string, string>) => (await fetch(url, { method: 'POST', body: text, headers })).status
  expect(await post(body, signed(body, nowS, 'whsec_other'))).toBe(401)
  expect(await post(body, signed(body, nowS - 301))).toBe(401)
  expect(await post(`${body} `, signed(body, nowS))).toBe(401)
  expect(await post(body, {})).toBe(401)
  expect((await fetch(url)).status).toBe(405)
  expect(await post('no JSON', signed('no JSON', nowS))).toBe(500)
  expect(await post(body, signed(body, nowS))).toBe(204)
  expect(await post(body, signed(body, nowS))).toBe(204)
  expect(
    lines()
      .slice(before)
      .filter(line => line.startsWith('handled')),
  ).toEqual(['handled ping evt_1 {}'])
})

test('without a secret it says what to set', async () => {
  const { err, ended } = startProgram(process.execPath, [program], { env: {} })
  expect(await ended).toBe(2)
  expect(err()).toContain('WEBHOOK_SECRET')
})
