/** The chat tool: where a call went, progress, calls that end before the answer, and values that are not accepted as arguments. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { startApp, type TestApp, until } from '../harness/app.ts'
import { mcpClients, type Step, stepsTo } from './mcp-clients.ts'
import { type Mount, soonClock, soonSeconds, startMount } from './mount.ts'
import { sampleTools } from './sample-tools.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ dialects: true, clock: soonClock })
})
afterAll(() => app.stop())
beforeEach(() => {
  for (const upstream of [app.alpha, app.beta, app.indus, app.others.claude]) upstream.reset()
})
const clients = mcpClients(() => app)
afterEach(() => clients.closeAll())

const totals = async () => (await app.call('GET', '/v1/usage')).json.totals

describe.each(clients.eras)('chat in the %s', (_era, connect) => {
  test('the result of a chat says where the call went, on whose key, and what it cost', async () => {
    const client = await connect()
    const named = await client.call('chat', { model: 'test-model', prompt: 'Hello there' })
    expect(named.data).toMatchObject({
      model: 'test-model',
      provider: 'alpha',
      byok: false,
      cost_inr: expect.any(Number),
      route: { residency: 'global', attempts: [{ provider: 'alpha', model: 'test-model', outcome: 'answered' }] },
    })
    const auto = await client.call('chat', { prompt: 'Write a function that sorts a list', data_policy: 'india_only' })
    expect(auto.data).toMatchObject({ provider: 'indus', route: { preset: expect.any(String), reason: expect.any(String), residency: 'india' } })
    expect(auto.data.model).not.toBe('auto')
  })

  test('a failover is reported when it happens and in the result, and progress only rises', async () => {
    app.alpha.script([{ status: 503 }])
    const steps: Step[] = []
    const reply = await (await connect()).call('chat', { model: 'test-model', prompt: 'Hello', exclude: ['indus'] }, undefined, step => steps.push(step))
    expect(reply.data.route.attempts).toEqual([
      { provider: 'alpha', model: 'test-model', outcome: 'failed', why: expect.stringContaining('503') },
      { provider: 'beta', model: 'test-model', outcome: 'answered' },
    ])
    expect(steps.slice(0, 2).map(({ message }) => message)).toEqual(['asking test-model', 'alpha failed, trying beta'])
    expect(steps[0]?.progress).toBe(0)
    for (const [index, { progress }] of steps.entries()) expect(progress).toBeGreaterThan(steps[index - 1]?.progress ?? -1)
  })

  test('a JSON answer is returned as data too, and a conversation with parts is passed on unchanged', async () => {
    app.alpha.script([{ chunks: ['{"city":', '"Pune"}'] }, {}])
    const client = await connect()
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    expect((await client.call('chat', { model: 'alpha-only', prompt: 'Where?', json_schema: schema })).data.json).toEqual({ city: 'Pune' })
    expect(app.alpha.requests[0]?.json).toMatchObject({ response_format: { type: 'json_schema', json_schema: { schema } } })
    const messages = [
      { role: 'user', content: [{ type: 'text', text: 'One' }] },
      { role: 'assistant', content: 'Two' },
      { role: 'user', content: 'Three' },
    ]
    await client.call('chat', { model: 'alpha-only', system: 'Be brief', messages, temperature: 0.5 })
    expect(app.alpha.requests[1]?.json).toMatchObject({
      temperature: 0.5,
      messages: [{ role: 'system', content: 'Be brief' }, { role: 'user' }, messages[1], messages[2]],
    })
  })

  test("claude-* needs a saved key. Neither a key in the arguments nor the caller's bearer reaches a provider", async () => {
    const client = await connect()
    const reply = await client.call('chat', { model: 'claude-test', prompt: 'Hello' })
    expect(reply).toMatchObject({ isError: true, data: { code: 'byok_required', status: 401 } })
    expect(reply.text).toContain('Do not retry')
    const withKey = await client.call('chat', { model: 'alpha-only', prompt: 'Hello', upstream_key: 'sk-mine' })
    expect(withKey).toMatchObject({ isError: true, data: { code: 'bad_request' } })
    expect(JSON.stringify(withKey)).not.toContain('sk-mine')
    expect([app.alpha.requests.length, app.others.claude.requests.length]).toEqual([0, 0])
    await client.call('chat', { model: 'alpha-only', prompt: 'Hello' })
    expect(JSON.stringify(app.alpha.requests[0])).not.toContain(app.key)
    expect(app.alpha.requests[0]?.headers.authorization).toBe('Bearer alpha-platform-secret')
  })

  test('MCPX-03 when the client cancels a chat, the connection to the provider is closed and the output so far is metered', async () => {
    const before = await totals()
    app.alpha.script([{ holdAfterChunks: 3 }])
    const client = await connect()
    const stop = new AbortController()
    const call = client.call('chat', { model: 'alpha-only', prompt: 'x' }, stop.signal).catch(() => 'cancelled')
    await until(() => app.alpha.requests.length === 1)
    stop.abort()
    expect(await call).toBe('cancelled')
    await until(() => app.alpha.requests[0]?.aborted === true)
    await until(async () => (await totals()).requests === before.requests + 1)
    expect((await totals()).total_tokens).toBeGreaterThan(before.total_tokens)
  })

  test('MCPX-04 a chat that takes longer than max_wait_s returns the answer so far, even when it is empty', async () => {
    app.alpha.script([{ holdAfterChunks: 3 }, { hang: true }])
    const client = await connect()
    const [begun, silent] = await Promise.all([
      client.call('chat', { model: 'alpha-only', prompt: 'x', max_wait_s: soonSeconds }),
      client.call('chat', { model: 'alpha-only', prompt: 'y', max_wait_s: soonSeconds }),
    ])
    const texts = [begun, silent].map(reply => {
      expect(reply).toMatchObject({ data: { finish_reason: 'deadline', usage: { estimated: true }, route: { attempts: [{ provider: 'alpha' }] } } })
      expect(reply.isError).toBeUndefined()
      expect(reply.data.usage.completion_tokens > 0).toBe(reply.data.text !== '')
      expect(reply.text).toContain(`cut short after ${soonSeconds} s`)
      return reply.data.text
    })
    expect(texts.filter(text => text === '')).toHaveLength(1)
    await until(() => app.alpha.requests.every(({ aborted }) => aborted))
  })

  test('HARD-05 a short max_wait_s gives no discount. The gateway reads on while the model thinks, and charges its output', async () => {
    const before = await totals()
    const usage = { prompt_tokens: 10, completion_tokens: 20_000, total_tokens: 20_010 }
    app.alpha.script([{ holdAfterChunks: 1, usage }])
    const client = await connect()
    const reply = await client.call('chat', { model: 'openai-model', prompt: 'x', max_wait_s: soonSeconds })
    expect(reply.data).toMatchObject({ finish_reason: 'deadline' })
    expect(app.alpha.requests[0]?.aborted).toBe(false)
    app.alpha.release()
    await until(async () => (await totals()).requests === before.requests + 1)
    // The catalog says that the model writes at most 8,192 tokens. Hidden output is charged up to that number.
    expect((await totals()).total_tokens - before.total_tokens).toBe(10 + 8192)
  })
})

test("MCP-05 the result of a call on the organisation's own provider key says so", async () => {
  const owner = await app.signIn()
  app.others.claude.script(({ path }) => (path.includes('/models') ? { body: { data: [{ id: 'claude-test', type: 'model' }] } } : {}))
  expect((await app.call('PUT', '/me/byok/claude', { key: 'sk-ant-saved' }, { cookie: owner })).status).toBe(200)
  const reply = await (await clients.discoverClient()).call('chat', { model: 'claude-test', prompt: 'Hello' })
  expect(reply.data).toMatchObject({ byok: true, provider: 'claude', cost_inr: 0 })
  expect(app.others.claude.requests.at(-1)?.headers['x-api-key']).toBe('sk-ant-saved')
  await app.call('DELETE', '/me/byok/claude', undefined, { cookie: owner })
})

describe('progress of a slow chat', () => {
  const chunk = (content: string) => ({ choices: [{ index: 0, delta: { content } }] })
  const parts = ['one two three ', 'four five six ', 'seven eight nine ', 'ten eleven twelve']
  let mount: Mount
  let monotonicMs = 0
  let isSilent = false
  const timers = new Set<() => void>()
  /** Half a minute in which the provider sends nothing. */
  async function silence(): Promise<void> {
    for (let n = 0; n < 2; n++) {
      monotonicMs += 15_000
      for (const fire of [...timers]) {
        timers.delete(fire)
        fire()
      }
    }
  }
  /** The third part arrives in the same second as the second part. */
  async function* slowly(): AsyncGenerator<Uint8Array> {
    if (isSilent) await silence()
    for (const [index, part] of parts.entries()) {
      monotonicMs += index === 2 ? 100 : 1100
      yield Buffer.from(`data: ${JSON.stringify(chunk(part))}\n\n`)
    }
    yield Buffer.from('data: [DONE]\n\n')
  }
  beforeAll(async () => {
    const clock: Clock = {
      ...systemClock,
      monotonicMs: () => monotonicMs,
      after(ms, run) {
        if (ms === 15_000) timers.add(run)
        const stop = ms === 15_000 ? () => undefined : systemClock.after(ms, run)
        return () => {
          timers.delete(run)
          stop()
        }
      },
    }
    mount = await startMount(sampleTools({ labels: [], started: 0, aborted: [] }, slowly), { clock })
  })
  afterAll(() => mount.close())

  async function run(streams: boolean): Promise<{ steps: Step[]; text: string }> {
    const steps: Step[] = []
    const token = 'br-full'
    const text = (await mountedCall(mount.url, token, { prompt: 'x', stream_progress: streams }, step => steps.push(step))).text
    return { steps, text }
  }

  test('progress begins at 0, counts tokens, only rises, and is reported at most once a second', async () => {
    const { steps, text } = await run(false)
    expect(text).toBe(parts.join(''))
    expect(steps.map(({ message }) => message)).toEqual([
      'asking auto',
      '5 tokens, provider test-provider, 1.1 s',
      '10 tokens, provider test-provider, 2.2 s',
      '21 tokens, provider test-provider, 3.4 s',
    ])
    expect(steps.map(({ progress }) => progress)).toEqual([0, 5, 10, 21])
  })

  test('progress says that the call waits while nothing arrives, and stops with the answer', async () => {
    isSilent = true
    const { steps } = await run(false)
    isSilent = false
    expect(steps.slice(0, 4).map(({ message }) => message)).toEqual([
      'asking auto',
      'waiting, 15.0 s',
      'waiting, 30.0 s',
      '5 tokens, provider test-provider, 31.1 s',
    ])
    for (const [index, { progress }] of steps.entries()) expect(progress).toBeGreaterThan(steps[index - 1]?.progress ?? -1)
    expect(timers.size).toBe(0)
  })

  test('progress contains each part of the text once, if the client asked for the text', async () => {
    const { steps } = await run(true)
    expect(steps.map(({ message }) => message)).toEqual(['asking auto', parts[0], parts[1], `${parts[2]}${parts[3]}`])
  })
})

/** Makes one chat call with progress, with the 2.x client. */
async function mountedCall(url: string, token: string, args: Record<string, unknown>, onprogress: (step: Step) => void): Promise<{ text: string }> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }))
  const result = await client.callTool({ name: 'chat', arguments: args }, { onprogress: stepsTo(onprogress) })
  await client.close()
  const [block] = result.content as { text: string }[]
  return { text: block?.text ?? '' }
}
