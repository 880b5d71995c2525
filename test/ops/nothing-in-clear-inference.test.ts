/** Callers of every inference endpoint send and receive texts and send credentials. Afterwards, every stored byte is searched for them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statement } from '../../src/platform/db/db.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { foundIn, keptBytes } from '../harness/kept-bytes.ts'
import { fileWithMedia } from '../harness/media-models.ts'
import { picture } from '../harness/pictures.ts'
import type { RecordedRequest, UpstreamScript } from '../harness/upstream-server.ts'
import { wavOf } from '../harness/wav.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({
    dialects: true,
    env: { CIRCUIT_FAILURES: '1000' },
    operatorFile: fileWithMedia,
  })
})
afterAll(() => app.stop())

const countContent = statement<[], { rows: number }>('test.nothing_in_clear_inference_count_content', `select count(*)::int as "rows" from content_log`)

/** Every text and credential that was sent. At the end, each is searched for. */
const secrets = new Map<string, string>()
const secret = (name: string): string => {
  const value = `${name.replaceAll(' ', '-')}-that-nobody-may-keep-0417`
  secrets.set(name, value)
  return value
}

/** Returns the reply of a provider on each path. When the provider fails, the reply repeats what the provider received. */
function answer({ path, raw, headers }: RecordedRequest, failing: number | null): UpstreamScript {
  if (failing !== null)
    return {
      status: failing,
      body: { error: { message: `I did not like ${raw.toString('utf8').slice(0, 4000)} with ${JSON.stringify(headers)}`, type: 'x', code: null } },
    }
  if (path.includes('/images/'))
    return { body: { created: 1, data: [{ b64_json: Buffer.from(secret('drawn picture')).toString('base64'), revised_prompt: secret('revised prompt') }] } }
  if (path.includes('/audio/speech')) return { headers: { 'content-type': 'audio/mpeg' }, rawStream: [secret('spoken sound')] }
  if (path.includes('/audio/')) return { body: { text: secret('transcript'), duration: 1 } }
  return { chunks: [secret('answer'), ' and more'] }
}

let calls = 0

async function everyCall(): Promise<number[]> {
  const statuses: number[] = []
  const idempotency = () => ({ 'idempotency-key': `${secret('idempotency key')}-${calls++}` })
  const json = async (path: string, body: object | string, headers: Record<string, string> = {}, token: string | null = app.key) => {
    const more = { ...idempotency(), ...headers, 'content-type': 'application/json' }
    statuses.push((await app.call('POST', path, body, { token, headers: more })).status)
  }
  const form = async (path: string, fields: Record<string, string>, name: string, bytes: Buffer, filename: string) => {
    const sent = new FormData()
    for (const [field, value] of Object.entries(fields)) sent.append(field, value)
    sent.append(name, new Blob([new Uint8Array(bytes)]), filename)
    const reply = await fetch(app.baseUrl + path, { method: 'POST', headers: { authorization: `Bearer ${app.key}`, ...idempotency() }, body: sent })
    await reply.arrayBuffer()
    statuses.push(reply.status)
  }
  const tool = {
    name: 'look_up',
    description: secret('tool description'),
    input_schema: { type: 'object', properties: { q: { enum: [secret('tool schema')] } } },
  }
  const messages = [
    { role: 'user', content: [{ type: 'text', text: secret('user text') }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look_up', input: { q: secret('tool argument') } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: secret('tool result') }] },
  ]
  const talk = { max_tokens: 50, system: secret('system text'), metadata: { user_id: secret('user id') }, messages, tools: [tool] }
  const own = { 'x-br-api-key': app.key, authorization: `Bearer ${secret('forwarded bearer')}`, 'x-api-key': secret('forwarded key') }
  for (const model of ['test-model', 'gemini-model', 'anthropic-model', 'responses-model'])
    for (const stream of [false, true]) await json('/v1/messages', { model, stream, ...talk })
  for (const stream of [false, true]) await json('/v1/messages', { model: 'claude-test', stream, ...talk }, own, null)
  await json('/v1/messages/count_tokens', { model: 'claude-test', ...talk }, own, null)
  // A request may contain a field of the gateway twice, and with escapes in its name.
  const twice = `"upstream\\u005fkey":"${secret('first upstream key')}","upstream_key":"${secret('upstream key of messages')}"`
  await json('/v1/messages', `{"model":"claude-test",${twice},"max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`)
  await json('/v1/responses', `{"model":"responses-model",${twice},"input":"hi"}`)
  const items = [
    { role: 'user', content: [{ type: 'input_text', text: secret('input text') }] },
    { type: 'function_call', call_id: 'c1', name: 'look_up', arguments: JSON.stringify({ q: secret('call argument') }) },
    { type: 'function_call_output', call_id: 'c1', output: secret('call output') },
  ]
  const response = { instructions: secret('instructions text'), input: items, user: secret('end user') }
  for (const model of ['test-model', 'gemini-model', 'anthropic-model', 'responses-model'])
    for (const stream of [false, true]) await json('/v1/responses', { model, stream, ...response })
  await json('/v1/embeddings', { model: 'test-embed', input: [secret('embedded text')] })
  await json('/v1/images/generations', {
    model: 'draw',
    prompt: secret('image prompt'),
    user: secret('image user'),
    upstream_key: secret('upstream key of images'),
  })
  await form('/v1/images/edits', { model: 'draw', prompt: secret('edit prompt') }, 'image', await picture(8, 8), `${secret('picture name')}.png`)
  await json('/v1/audio/speech', { model: 'say', input: secret('spoken text'), instructions: secret('way of speaking'), voice: 'v' })
  const heard = { model: 'hear', prompt: secret('hint of words'), upstream_key: secret('upstream key of audio') }
  await form('/v1/audio/transcriptions', heard, 'file', wavOf(1), `${secret('recording name')}.wav`)
  await json('/v1/audio/speech', { model: 'say', input: secret('refused text'), voice: 5 })
  await json('/me/route/preview', { model: 'test-model', ...talk })
  return statuses
}

test('no inference endpoint stores text or a credential of its callers in clear: not in the database, the journal or the log', async () => {
  const cookie = await app.signIn()
  let failing: number | null = null
  for (const upstream of [app.alpha, app.beta, app.indus, app.others.claude, app.others.gem, app.others.resp])
    upstream.script(request => answer(request, failing))
  const served = await everyCall()
  expect(served.filter(status => status !== 200)).toEqual([400])
  for (const status of [400, 401, 429, 500]) {
    failing = status
    // Only the preview succeeds, because it calls no provider.
    expect((await everyCall()).filter(code => code < 400)).toEqual([200])
  }
  failing = null
  // When an organisation stores content, the content is sealed.
  expect((await app.call('PUT', '/me/org/data-retention', { days: 3 }, { cookie })).status).toBe(200)
  await everyCall()
  failing = 400
  await everyCall()
  await app.gateway.app.contentLog.flush()
  await until(async () => (await app.db.one(countContent)).rows > 40)

  const kept = await keptBytes(app)
  expect(foundIn(kept, secrets)).toEqual([])
  expect(secrets.size).toBeGreaterThan(30)
  expect(kept.get('log')).toContain('route failed')
  expect(kept.get('log')).not.toContain('internal_error')
})
