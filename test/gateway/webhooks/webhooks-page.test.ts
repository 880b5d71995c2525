/** Compares docs/guides/webhooks.md and the OpenAPI document with the event catalog. Runs the page's code for receivers on real deliveries. */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type EventType, eventCatalog } from '../../../src/gateway/webhooks/events/event-catalog.ts'
import { settings } from '../../../src/platform/config.ts'
import { startApp, type TestApp } from '../../harness/app.ts'
import { type ReceivedDelivery, startWebhookReceiver, type WebhookReceiver } from '../../harness/webhook-receiver.ts'
import { eventsSection } from './events-page.ts'

const pagePath = new URL('../../../docs/guides/webhooks.md', import.meta.url)
const page = readFileSync(pagePath, 'utf8')
/** Returns the first code block of that language that contains the word. */
function block(language: string, word: string): string {
  const found = [...page.matchAll(/```(\w+)\n([\s\S]*?)```/g)].find(([, name, text]) => name === language && text?.includes(word))?.[2]
  if (found === undefined) throw new Error(`no ${language} block with ${word}`)
  return found
}
const has = (tool: string): boolean => spawnSync(tool, [tool === 'openssl' ? 'version' : '--version']).status === 0
const run = async (tool: string, args: readonly string[], options: object): Promise<string> => (await promisify(execFile)(tool, args, options)).stdout.trim()

test('docs/guides/webhooks.md has every event with its trigger and data, as in the catalog', () => {
  const [before = '', rest = ''] = page.split('\n## Events\n')
  const tail = rest.slice(rest.indexOf('\n## '))
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(pagePath, `${before}\n## Events\n${eventsSection().replace(/\n+$/, '\n')}${tail}`)
  else expect(rest.slice(0, rest.length - tail.length).trim()).toBe(eventsSection().trim())
})

test('docs/guides/webhooks.md names the default values of the settings', () => {
  for (const name of [...page.matchAll(/WEBHOOK_[A-Z_]+/g)].map(([found]) => found)) expect(Object.keys(settings)).toContain(name)
  expect(settings.WEBHOOK_RETRY_S.default).toBe([5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600].join(','))
  const named = { WEBHOOK_TIMEOUT_MS: '15000', WEBHOOK_CONCURRENCY: '4', WEBHOOK_DISABLE_FAILURES: '20', WEBHOOK_KEEP_DAYS: '30' } as const
  for (const [name, value] of Object.entries(named)) expect(settings[name as keyof typeof named].default, name).toBe(value)
})

describe("the page's code that receivers use to check deliveries", () => {
  let app: TestApp
  let receiver: WebhookReceiver
  let secret: string
  let delivery: ReceivedDelivery
  const folder = mkdtempSync(join(tmpdir(), 'brigade-webhooks-'))
  beforeAll(async () => {
    receiver = await startWebhookReceiver()
    app = await startApp({ env: { OUTBOUND_ALLOW: receiver.hostPort, WEBHOOK_POLL_MS: '20' } })
    const cookie = await app.signIn()
    const made = (await app.call('POST', '/me/webhooks', { url: `${receiver.url}/hook` }, { cookie })).json
    secret = made.secret
    await app.call('POST', `/me/webhooks/${made.id}/test`, {}, { cookie })
    const [first] = await receiver.untilReceived(1)
    if (first === undefined) throw new Error('nothing was delivered')
    delivery = first
  })
  afterAll(async () => {
    await app?.stop()
    await receiver?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Returns the signature with another last character. */
  const bent = (signature: string): string => signature.slice(0, -1) + (signature.endsWith('0') ? '1' : '0')

  test('the Node code accepts a real delivery, and refuses a changed, a foreign and an old one', async () => {
    const file = join(folder, 'genuine.mjs')
    writeFileSync(file, block('js', 'isGenuine'))
    const { isGenuine } = await import(pathToFileURL(file).href)
    const { signature, raw } = delivery
    expect(isGenuine(secret, signature, raw)).toBe(true)
    for (const wrong of [bent(signature), '', undefined, signature.replace(/t=\d+/, 't=1'), `${signature},v1=`])
      expect(isGenuine(secret, wrong, raw)).toBe(false)
    expect(isGenuine(`${secret}x`, signature, raw)).toBe(false)
    expect(isGenuine(secret, signature, Buffer.concat([raw, Buffer.from(' ')]))).toBe(false)
  })

  test.runIf(has('python3'))('the Python code accepts a real delivery, and refuses one with a changed signature and an old one', async () => {
    const { signature, raw } = delivery
    writeFileSync(join(folder, 'genuine.py'), block('python', 'is_genuine'))
    writeFileSync(join(folder, 'body.json'), raw)
    const ask = `
import sys
from genuine import is_genuine
body = open("body.json", "rb").read()
print([is_genuine(sys.argv[1], header, body) for header in sys.argv[2:]])`
    const old = signature.replace(/t=\d+/, 't=1')
    expect(await run('python3', ['-c', ask, secret, signature, bent(signature), old, ''], { cwd: folder })).toBe('[True, False, False, False]')
  })

  test.runIf(has('openssl') && has('bash'))('the shell lines print the value of the signature header', async () => {
    writeFileSync(join(folder, 'body.json'), delivery.raw)
    const env = { PATH: process.env['PATH'], SECRET: secret, SIGNATURE: delivery.signature }
    const printed = await run('bash', ['-euo', 'pipefail', '-c', block('sh', 'openssl')], { cwd: folder, env })
    expect(`v1=${printed}`).toBe(delivery.signature.split(',')[1])
  })

  test('the webhooks in the OpenAPI document describe each event, and headers, envelope and data of a real delivery match them', async () => {
    const { webhooks, openapi } = (await app.call('GET', '/openapi.json')).json
    expect(openapi).toBe('3.1.0')
    expect(Object.keys(webhooks)).toEqual(Object.keys(eventCatalog))
    for (const type of Object.keys(eventCatalog) as EventType[]) {
      const { summary, requestBody, responses, security } = webhooks[type].post
      const schema = requestBody.content['application/json'].schema
      expect([summary, schema.properties.type.const, security]).toEqual([eventCatalog[type].when, type, []])
      expect(Object.keys(schema.properties.data.properties)).toEqual(Object.keys(eventCatalog[type].data.shape))
      expect(Object.keys(responses)).toEqual(['410', '2XX', 'default'])
    }
    const { parameters, requestBody } = webhooks.ping.post
    for (const { name, schema } of parameters) expect(z.fromJSONSchema(schema).safeParse(delivery.headers[name.toLowerCase()]).error, name).toBeUndefined()
    expect(parameters.map((parameter: { name: string }) => parameter.name)).toEqual(['X-BR-Event', 'X-BR-Signature', 'X-BR-Webhook-Id', 'X-BR-Delivery-Id'])
    const envelope = z.fromJSONSchema(requestBody.content['application/json'].schema)
    expect(envelope.safeParse(delivery.json).error).toBeUndefined()
    expect(envelope.safeParse({ ...delivery.json, created: 'now' }).success).toBe(false)
  })
})
