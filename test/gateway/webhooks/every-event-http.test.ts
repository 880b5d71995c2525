/**
 * Makes every event happen in one organisation. Every text that a person types contains a marked word. Then searches for these words wherever data is
 * kept or sent.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventCatalog } from '../../../src/gateway/webhooks/events/event-catalog.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { movableClock } from '../../harness/clock.ts'
import { longThinkers, usageWorth } from '../../harness/long-thinkers.ts'
import { fileWithMedia } from '../../harness/media-models.ts'
import { billingEnv, type PaymentProvider, startPaymentProvider } from '../../harness/payment-provider.ts'
import { until } from '../../harness/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { type MailServer, startMailServer } from '../mail/mail-server.ts'
import { type ListedServer, startListedServer, toolOf } from '../tools/registry/listed-server.ts'
import { heard, listen, settled } from './heard.ts'

const webhookRows = statement<[], { line: string }>(
  'test.webhook_rows',
  'select e::text as "line" from webhook_events e union all select d::text from webhook_deliveries d',
)
const morning = Date.UTC(2026, 10, 21, 3, 45, 1)
const clock = movableClock(morning)
/** A word whose letters JSON, URLs and headers do not change, and that occurs nowhere else. */
const said = 'zqpromptzq'
const replied = 'zqreplyzq'
const ownKey = 'sk-zqownkeyzq-0123456789'
const typed = {
  reason: 'zqreasonzq',
  keyName: 'zqkeynamezq',
  description: 'zqdescriptionzq',
  workspace: 'zqworkspacezq',
  agent: 'zqagentzq',
  label: 'zqlabelzq',
  addressee: 'zqaddresseezq',
  street: 'zqstreetzq',
  legalName: 'zqlegalnamezq',
  tool: 'zqtoolzq',
  user: 'zquserzq',
  userAgent: 'zquseragentzq',
  collection: 'zqcollectionzq',
  toolServer: 'zqtoolserverzq',
  toolText: 'zqtooltextzq',
}

let receiver: WebhookReceiver
let payments: PaymentProvider
let mail: MailServer
let tools: ListedServer
let app: TestApp
let org: { orgId: number; userId: number; key: string }
let cookie: string
/** Replies of the gateway that were errors. */
const errors: string[] = []

const asked = { model: 'alpha-only', messages: [{ role: 'user', content: `Say it: ${said}` }], user: typed.user }
const spending = (inr: number) => ({ chunks: [replied], usage: usageWorth(inr) })

async function post(path: string, body: object, options: { token?: string; cookie?: string; headers?: Record<string, string> } = { cookie }) {
  const reply = await app.call('POST', path, body, { ...options, headers: { 'user-agent': typed.userAgent, ...options.headers } })
  if (reply.status >= 400) errors.push(reply.text)
  return reply
}
async function made(path: string, body: object) {
  const reply = await post(path, body)
  expect(reply.status, `${path}: ${reply.text}`).toBeLessThan(300)
  return reply.json
}
const chat = (token: string, more: object = {}, headers: Record<string, string> = {}) => post('/v1/chat/completions', { ...asked, ...more }, { token, headers })
async function spend(token: string, inr: number, more: object = {}, headers: Record<string, string> = {}) {
  app.alpha.script(spending(inr))
  const reply = await chat(token, more, headers)
  expect(reply.status, reply.text).toBe(200)
  await settled(app)
}

async function topUp(inr: number): Promise<void> {
  const { order_id } = await made('/me/billing/orders', { amount_inr: inr })
  const checkout = payments.checkout(order_id)
  await made('/me/billing/verify', checkout)
  // The provider also reports the payment, twice.
  const told = payments.webhook('payment.captured', { orderId: order_id, paymentId: checkout.payment_id })
  for (let count = 0; count < 2; count++) expect((await fetch(`${app.baseUrl}/webhooks/razorpay`, { method: 'POST', ...told })).status).toBe(200)
}

/** Makes every kind of event happen once. */
async function aLife(): Promise<void> {
  await made('/me/billing/address', {
    name: typed.addressee,
    line1: typed.street,
    city: 'Bengaluru',
    state: 'Karnataka',
    pincode: '560001',
  })
  await made('/me/billing/profile', { legal_name: typed.legalName })
  await made('/me/billing/settings', { low_balance_threshold_inr: 300 })
  await topUp(1000)
  const workspace = await made('/me/workspaces', { name: typed.workspace, member_uids: [org.userId] })
  const key = await made('/me/keys', { name: typed.keyName, workspace_id: workspace.id, budget_inr: 100 })
  await post('/v1/me/agents', { name: typed.agent, description: typed.description }, { token: org.key })
  // The only call of a run that may have one.
  await spend(org.key, 1, {}, { 'x-br-run-id': 'job', 'x-br-run-max-calls': '1' })
  // A run that sends the same body again and again.
  for (let count = 0; count < 6; count++) await spend(org.key, 0.001, {}, { 'x-br-run-id': 'again' })
  await until(() => receiver.at('/all').some(({ event }) => event === 'run.loop'), 'the loop is told', 20_000)
  clock.advance(30 * 3600_000)
  // The key's spend rises to 50, 85 and 105 of its budget of 100. All this is within one hour, after a day with almost no spend.
  await spend(key.key, 50, {}, { 'x-br-agent-id': typed.agent })
  await spend(key.key, 35, { tools: [{ type: 'function', function: { name: typed.tool, parameters: {} } }] }, { 'x-br-agent-id': typed.label })
  await spend(key.key, 20)
  const { request } = await made('/me/budget-requests', { scope: 'key', target_id: key.id, amount_inr: 10, reason: typed.reason })
  await made(`/me/budget-requests/${request.id}`, { approve: false })
  for (let sweeps = 0; sweeps < 2; sweeps++) await app.gateway.app.jobs.runOnce('usage.anomalies')
  // 894 are left of the balance before this call, and 194 after it. That is below the threshold of 300.
  await spend(org.key, 700)
  await app.call('DELETE', `/me/keys/${key.id}`, undefined, { cookie })
}

/** Sends the same words in the other chat formats and to the endpoints that are not chat. */
async function otherFormats(): Promise<void> {
  const drawn = { status: 200, body: { created: 1, data: [{ b64_json: 'aGk=', revised_prompt: replied }] } }
  const chats = { model: 'alpha-only', messages: asked.messages }
  for (const [path, body, reply] of [
    ['/v1/messages', { ...chats, max_tokens: 1000 }, spending(0.01)],
    ['/v1/messages', { ...chats, max_tokens: 1000, stream: true }, spending(0.01)],
    ['/v1/responses', { model: 'alpha-only', input: said, instructions: said }, spending(0.01)],
    ['/v1/responses', { model: 'alpha-only', input: said, stream: true }, spending(0.01)],
    ['/v1/images/generations', { model: 'draw', prompt: said }, drawn],
  ] as const) {
    app.alpha.script(reply)
    const answered = await post(path, body, { token: org.key })
    expect(answered.status, `${path}: ${answered.text}`).toBe(200)
    expect(answered.text).toContain(replied)
  }
}

/** Makes calls that fail in every way. Some of them have a key of the caller, and the provider repeats this key in its errors. */
async function whatGoesWrong(): Promise<void> {
  const echo = (status: number) => ({ status, body: { error: { message: `Wrong: ${ownKey} said ${said}` } }, headers: { 'x-echo': ownKey } })
  for (const status of [401, 400, 429, 500, 402]) {
    app.alpha.script(echo(status))
    await chat(org.key, { upstream_key: ownKey })
  }
  for (const broken of [{ reset: true }, { closeMidHeaders: true }, { breakAfterChunks: 1, chunks: [replied, replied] }]) {
    app.alpha.script(broken)
    await chat(org.key, { stream: true, upstream_key: ownKey })
  }
  await chat(org.key, { upstream_key: `${ownKey} with spaces` })
  await chat(org.key, { upstream_key: ownKey, model: 'alpha/no-model-of-the-catalog' })
  await chat(org.key, { upstream_key: ownKey, model: 'no-model-at-all' })
  await chat(org.key, { messages: said })
  await post('/v1/embeddings', { model: 'test-embed', input: said, upstream_key: ownKey }, { token: org.key })
  for (const stream of [false, true]) {
    app.alpha.script(spending(0.01))
    await chat(org.key, { stream, upstream_key: ownKey }, { 'idempotency-key': `once-${stream}` })
  }
  // These failures open the circuit of a route.
  app.alpha.script(() => ({ status: 503, body: { error: { message: said } } }))
  for (let count = 0; count < 6; count++) await chat(org.key, { model: 'same-id' })
  await until(() => receiver.at('/all').some(({ event }) => event === 'provider.circuit_open'), 'the open circuit is told', 20_000)
  await settled(app)
}

/** Makes the canaries of a collection fail until its alert is sent, and then succeed again. */
async function aBadHour(): Promise<void> {
  const { slug } = await made('/me/collections', { name: typed.collection, model: 'global-only', steps: [{ model: 'global-only', provider: 'alpha' }] })
  await made(`/me/collections/${slug}/alerts`, { metric: 'error_rate', threshold: 0.5, channel: 'webhook' })
  app.alpha.script(() => ({ status: 503, body: { error: { message: said } } }))
  for (let count = 0; count < 3; count++) {
    clock.advance(20_000)
    await made(`/me/collections/${slug}/check`, {})
  }
  app.alpha.script(() => ({ chunks: [replied] }))
}

/** Registers an MCP server whose tools an owner has to approve. The description of a tool is text of others. */
async function aToolServer(): Promise<void> {
  await made('/me/tool-servers', { slug: 'crm', name: typed.toolServer, url: tools.url })
}

beforeAll(async () => {
  ;[receiver, payments, mail] = await Promise.all([startWebhookReceiver(), startPaymentProvider(), startMailServer()])
  tools = await startListedServer('modern', [toolOf('find', { description: typed.toolText })])
  app = await startApp({
    clock,
    operatorFile: urls => longThinkers(urls, fileWithMedia),
    env: {
      ...billingEnv(payments),
      OUTBOUND_ALLOW: `${receiver.hostPort},${tools.hostPort}`,
      WEBHOOK_POLL_MS: '20',
      SMTP_URL: mail.url,
      MAIL_POLL_MS: '20',
      LOG_LEVEL: 'debug',
    },
  })
  org = await app.otherOrg('Everything Happens')
  cookie = await app.signIn(org.userId, org.orgId)
  const id = await listen(app, receiver, '/all', { description: typed.description }, cookie)
  await aLife()
  await otherFormats()
  await whatGoesWrong()
  await aBadHour()
  await aToolServer()
  await made(`/me/webhooks/${id}/test`, {})
  await settled(app)
  await until(() => mail.received.length >= 2, 'the receipt and the word of the low balance are sent', 20_000)
}, 60_000)
afterAll(async () => {
  await app.stop()
  await Promise.all([receiver.close(), payments.close(), mail.close(), tools.close()])
})

const forms = (mark: string): string[] => [
  mark,
  Buffer.from(mark).toString('hex'),
  Buffer.from(mark)
    .toString('base64')
    .replace(/.{0,4}$/, ''),
]
/** Returns the places that contain the mark as plain text, hex or base64. */
const placesOf = (mark: string, places: Record<string, string>): string[] =>
  Object.entries(places).flatMap(([place, text]) => (forms(mark).some(form => text.toLowerCase().includes(form.toLowerCase())) ? [place] : []))

const wire = () => receiver.received.map(({ raw, headers }) => `${JSON.stringify(headers)} ${raw}`).join('\n')
const mails = () => mail.received.map(({ raw, parts }) => raw + Object.values(parts).join('\n')).join('\n')
const files = () =>
  readdirSync(app.dataDir, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
/** Reads only the tables of webhooks. */
const outbox = async () => (await app.db.many(webhookRows)).map(({ line }) => line).join('\n')

describe('every event', () => {
  test('HOOK-22 every event is sent once when it happens and matches the catalog; access.decided is never sent', () => {
    const counts: Record<string, number> = {}
    for (const { type, org_id } of heard(receiver, '/all')) {
      counts[type] = (counts[type] ?? 0) + 1
      expect(org_id).toBe(org.orgId)
    }
    expect(counts).toEqual({
      'payment.captured': 1,
      'invoice.created': 1,
      'key.created': 1,
      'budget.warn': 1,
      'budget.block': 1,
      'usage.threshold': 2,
      'budget.requested': 1,
      'budget.decided': 1,
      'run.warn': 1,
      'run.held': 1,
      'run.loop': 1,
      // One for spend and one for tokens.
      'request.anomaly': 2,
      'credit.low': 1,
      'key.revoked': 1,
      'provider.circuit_open': 1,
      'collection.alert': 1,
      'tool.changed': 1,
      ping: 1,
    })
    // The tests of batches show their events, because these need a provider with batches.
    expect(Object.keys(eventCatalog).filter(type => counts[type] === undefined)).toEqual(['access.decided', 'batch.completed', 'batch.failed'])
  })

  test('HOOK-19 no event contains anything that a person said or typed, neither in the request nor in the outbox', async () => {
    const places = { wire: wire(), outbox: await outbox() }
    expect(places.wire).toContain(String(org.orgId))
    expect(places.outbox).toContain('budget.block')
    for (const mark of [said, replied, ownKey, org.key, ...Object.values(typed)]) expect([mark, placesOf(mark, places)]).toEqual([mark, []])
  })

  test('mail and log contain no prompt, no key, and none of the names that people typed', () => {
    const places = { mail: mails(), log: app.logLines.join('\n') }
    expect(mail.received.length).toBe(2)
    for (const mark of [said, replied, ownKey, org.key, typed.keyName, typed.description, typed.workspace, typed.agent, typed.label, typed.tool])
      expect([mark, placesOf(mark, places)]).toEqual([mark, []])
  })
})

describe('content', () => {
  test('CHAT-33 prompts and replies, in every format, are in no log line, table, webhook, file or mail', async () => {
    const places = { log: app.logLines.join('\n'), tables: await app.dump(), webhooks: wire(), files: files(), mails: mails() }
    expect(places.tables).toContain(typed.keyName)
    for (const mark of [said, replied]) expect(placesOf(mark, places)).toEqual([])
  })

  test('ROUTE-38 a provider key in a request is in no table, log line, error, webhook, file or usage report', async () => {
    const usage = await app.call('GET', '/v1/usage?from=2026-11-01&to=2026-11-30', undefined, { token: org.key })
    const csv = await app.call('GET', '/v1/usage?from=2026-11-01&to=2026-11-30&format=csv', undefined, { token: org.key })
    const audit = await app.call('GET', '/me/audit', undefined, { cookie })
    const activity = await Promise.all(
      ['/me/activity', '/me/activity/events?limit=200', '/me/usage', '/me/usage/daily'].map(path => app.call('GET', path, undefined, { cookie })),
    )
    expect([usage, csv, audit, ...activity].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 200])
    expect(activity[1]?.json.events.length).toBeGreaterThan(20)
    const places = {
      tables: await app.dump(),
      log: app.logLines.join('\n'),
      errors: errors.join('\n'),
      webhooks: wire(),
      activity: [usage, csv, audit, ...activity].map(({ text }) => text).join('\n'),
      files: files(),
      mails: mails(),
    }
    expect(errors.length).toBeGreaterThan(8)
    expect(placesOf(ownKey, places)).toEqual([])
    // Prompts and replies are not in the usage reports either.
    for (const mark of [said, replied]) expect(placesOf(mark, { activity: places.activity })).toEqual([])
  })
})
