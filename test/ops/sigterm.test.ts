import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, fleetAnswer, startFleet } from '../harness/fleet.ts'
import { fixedCostConfig, type GatewayProcess, startProcess } from '../harness/process.ts'
import { startUpstream, type UpstreamServer } from '../harness/upstream-server.ts'

const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

/** Reads a stream. Returns the text that has arrived so far, and a promise for the end of the stream. */
async function openStream(process: GatewayProcess, key: string): Promise<{ text(): string; done: Promise<void> }> {
  const response = await fetch(`${process.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'fixed-model',
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
  expect(response.status).toBe(200)
  let text = ''
  const decoder = new TextDecoder()
  const read = async (): Promise<void> => {
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk as Uint8Array, { stream: true })
  }
  return { text: () => text, done: read() }
}

describe('the end of a process', () => {
  let fleet: Fleet | null = null
  let upstream: UpstreamServer
  let folder: string
  let configFile: string
  let gateway: GatewayProcess
  let key: string
  /** Starts a gateway, on the same folder and database every time. */
  const start = async (env: Readonly<Record<string, string>> = {}): Promise<void> => {
    gateway = fleet === null ? await startProcess({ CONFIG_FILE: configFile, ...env }, folder) : await fleet.start(env, folder)
  }
  beforeAll(async () => {
    if (onPostgres) fleet = await startFleet()
    upstream = fleet?.upstream ?? (await startUpstream())
    configFile = fixedCostConfig(upstream.url)
    folder = mkdtempSync(join(tmpdir(), 'brigade-end-'))
    await start()
    key = fleet?.key ?? /API key +(\S+)/.exec(gateway.output())?.[1] ?? ''
  })
  afterAll(async () => {
    await gateway?.kill()
    await (fleet === null ? upstream?.close() : fleet.stop())
    rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(() => {
    upstream.reset()
    upstream.script(fleetAnswer)
  })

  const requestsMetered = async (): Promise<number> => Number((await call(gateway, key, 'GET', '/v1/usage')).json.totals.requests)

  test('OPS-03 after SIGTERM, a running stream finishes, no new call is accepted, usage is written, and the process exits with 0; the next start shows all usage', async () => {
    const before = await requestsMetered()
    for (const _ of times(5)) expect((await chat(gateway, key, 10)).status).toBe(200)
    upstream.script({ chunks: ['first part ', 'second part'], holdAfterChunks: 1 })
    const stream = await openStream(gateway, key)
    await until(() => stream.text().includes('first part'))
    const exit = gateway.terminate()
    await until(async () => {
      const reply = await chat(gateway, key, 10).catch(() => null)
      return reply === null || (reply.status === 503 && reply.json.error.message.includes('shutting down'))
    })
    expect(gateway.child.exitCode).toBeNull()
    upstream.release()
    await stream.done
    expect(stream.text()).toContain('second part')
    expect(stream.text()).not.toContain('"error"')
    expect(stream.text().endsWith('data: [DONE]\n\n')).toBe(true)
    expect(await exit).toBe(0)
    await start()
    expect(await requestsMetered()).toBe(before + upstream.requests.length)
    expect(upstream.requests.length).toBeGreaterThanOrEqual(6)
  })

  test('OPS-03 a stream that runs longer than DRAIN_MS is cut with a proper end, and its output is recorded', async () => {
    await gateway.terminate()
    await start({ DRAIN_MS: '500' })
    const before = await requestsMetered()
    upstream.script({ chunks: ['first part ', 'second part'], holdAfterChunks: 1 })
    const stream = await openStream(gateway, key)
    await until(() => stream.text().includes('first part'))
    expect(await gateway.terminate()).toBe(0)
    await stream.done
    const events = stream
      .text()
      .split('\n\n')
      .filter(event => event !== '')
    expect(events.at(-1)).toBe('data: [DONE]')
    expect(JSON.parse(events.at(-2)?.slice('data: '.length) ?? '').error).toMatchObject({ message: expect.stringContaining('shutting down') })
    await start()
    const report = (await call(gateway, key, 'GET', '/v1/usage')).json.totals
    expect(report.requests).toBe(before + 1)
    expect(report.value_inr).toBeGreaterThan(0)
  })

  test(`BUDX-02 kill -9 loses no completed reply on ${onPostgres ? 'PostgreSQL' : 'the embedded database'}`, async () => {
    const before = await requestsMetered()
    let completed = 0
    let isDead = false
    const lanes = times(4).map(async () => {
      while (!isDead) if ((await chat(gateway, key, 10).catch(() => null))?.status === 200) completed++
    })
    await upstream.arrived(100, 20_000)
    await gateway.kill()
    isDead = true
    await Promise.all(lanes)
    await start()
    // Each call that reached the upstream has a usage row. A call whose connection had only begun has one too. There is at most one such call in each
    // lane.
    const metered = (await requestsMetered()) - before
    expect(metered).toBeGreaterThanOrEqual(upstream.requests.length)
    expect(metered).toBeLessThanOrEqual(upstream.requests.length + lanes.length)
    expect(upstream.requests.length).toBeGreaterThanOrEqual(completed)
  })
})
