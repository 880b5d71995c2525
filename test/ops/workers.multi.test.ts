/** Several workers behind one port. Workers end, and the operator sends signals to all of them. No call may be refused or counted wrong. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, countReplies, type Fleet, type FleetReply, fleetAnswer, startFleet } from '../harness/fleet.ts'
import { keepCalling } from '../harness/keep-calling.ts'
import { type GatewayProcess, startProcess, workersOf } from '../harness/process.ts'

const count = 3
const times = (n: number): number[] => Array.from({ length: n }, (_, index) => index)

describe.runIf(onPostgres)('WORKERS', () => {
  let fleet: Fleet
  let gateway: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet({ WORKERS: String(count), DB_POOL_MAX: '4' })
    gateway = await fleet.start()
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  /** Returns the number of calls of each worker, by the number of the worker. */
  const callsBy = async (): Promise<Map<string, number>> => {
    const figures = await fetch(`${gateway.baseUrl}/metrics`)
    const found = new Map<string, number>()
    for (const line of (await figures.text()).split('\n')) {
      const [, worker, value] = /^brigade_inference_calls_total\{.*worker="(\d+)".*\} (\d+)/.exec(line) ?? []
      if (worker !== undefined) found.set(worker, (found.get(worker) ?? 0) + Number(value))
    }
    return found
  }

  test('FAST-01 several processes serve behind one port, and /metrics has the metrics of all of them, by worker', async () => {
    expect(gateway.output()).toContain(`${count} workers`)
    expect(new Set(workersOf(gateway)).size).toBe(count)
    const load = keepCalling(gateway, fleet.key, { clients: 12 })
    await until(() => load.answered() >= 120)
    expect(Object.keys(await load.stop())).toEqual(['200'])
    expect([...(await callsBy()).keys()].sort()).toEqual(['1', '2', '3'])
  })

  test('FAST-01 a killed worker is replaced, and the others continue', async () => {
    const [victim = 0, ...others] = workersOf(gateway)
    process.kill(victim, 'SIGKILL')
    // Connections of the dead worker are broken, but a new connection is never refused.
    const replies = await Promise.all(times(30).map(() => chat(gateway, fleet.key, 1, {}, { connection: 'close' })))
    expect(countReplies(replies)).toEqual({ 200: 30 })
    await until(() => workersOf(gateway).length === count)
    const now = workersOf(gateway)
    expect(now).toEqual(expect.arrayContaining(others))
    expect(now).not.toContain(victim)
    expect(gateway.output()).toContain('a worker ended and is replaced')
    await until(async () => (await fleet.violations()).length === 0)
  })

  test('FAST-01 a suspended worker delays only few new connections, and the others serve', async () => {
    const [still = 0] = workersOf(gateway)
    process.kill(still, 'SIGSTOP')
    try {
      let answered = 0
      const calls: Promise<FleetReply>[] = []
      for (const _ of times(40)) {
        calls.push(chat(gateway, fleet.key, 1, {}, { connection: 'close' }).finally(() => answered++))
        await new Promise(resolve => setTimeout(resolve, 10))
      }
      await until(() => answered >= 30)
      process.kill(still, 'SIGCONT')
      expect(countReplies(await Promise.all(calls))).toEqual({ 200: 40 })
    } finally {
      process.kill(still, 'SIGCONT')
    }
  })

  test('FAST-01 SIGHUP replaces the workers one by one without a refused connection or a lost call', { timeout: 90_000 }, async () => {
    const before = workersOf(gateway)
    const load = keepCalling(gateway, fleet.key, { clients: 10 })
    await until(() => load.answered() >= 50)
    gateway.child.kill('SIGHUP')
    await until(() => {
      const now = workersOf(gateway)
      return now.length === count && now.every(pid => !before.includes(pid))
    }, 60_000)
    expect(Object.keys(await load.stop())).toEqual(['200'])
  })

  test('FAST-02 a budget is exact over all workers, also while a worker is killed', { timeout: 60_000 }, async () => {
    // 100 calls of 100 tokens at ₹100 per million tokens.
    const { id, token } = await fleet.newAgent('on all workers', 1)
    fleet.upstream.script(fleetAnswer)
    const [victim = 0] = workersOf(gateway)
    const calls = times(200).map(async index => {
      if (index === 100) process.kill(victim, 'SIGKILL')
      return chat(gateway, token, 100, {}, { connection: 'close' }).catch(() => null)
    })
    const replies = (await Promise.all(calls)).filter(reply => reply !== null)
    const paid = replies.filter(({ status }) => status === 200).length
    expect(paid).toBeLessThanOrEqual(100)
    await until(async () => (await fleet.violations()).length === 0, 20_000)
    const rows = (await fleet.usage()).filter(({ agentId }) => agentId === id)
    expect(rows.filter(({ outcome }) => outcome === 'ok').length).toBeGreaterThanOrEqual(paid)
    expect(rows.reduce((sum, { valueUinr }) => sum + valueUinr, 0n)).toBeLessThanOrEqual(1_000_000n)
  })

  test('FAST-02 a revoke reaches every worker within a second', async () => {
    await until(() => workersOf(gateway).length === count)
    const { id, token } = await fleet.newAgent('to be revoked', 10)
    const ask = () => Promise.all(times(12).map(() => chat(gateway, token, 1, {}, { connection: 'close' })))
    expect(countReplies(await ask())).toEqual({ 200: 12 })
    expect((await call(gateway, fleet.key, 'POST', `/v1/me/agents/${id}/revoke`)).status).toBeLessThan(300)
    await until(async () => (await ask()).every(({ status, json }) => status === 401 && json.reason === 'agent_revoked'), 1000)
  })

  test('FAST-01 SIGTERM drains all workers: a running stream ends, and then no process is left', async () => {
    fleet.upstream.script(request => ({ ...fleetAnswer(request), holdAfterChunks: 1 }))
    const streams = times(6).map(async () => {
      const reply = await fetch(`${gateway.baseUrl}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${fleet.key}`, 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify({ model: 'fixed-model', max_tokens: 10, stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
      })
      return { status: reply.status, text: reply.text() }
    })
    const begun = await Promise.all(streams)
    const workers = workersOf(gateway)
    const ended = gateway.terminate()
    // The streams continue only when the workers have begun to drain.
    await until(
      async () =>
        (await fetch(`${gateway.baseUrl}/readyz`, { headers: { connection: 'close' } }).then(
          ({ status }) => status,
          () => 503,
        )) === 503,
    )
    fleet.upstream.release()
    for (const { status, text } of begun) {
      expect(status).toBe(200)
      expect(await text).toContain('data: [DONE]')
    }
    expect(await ended).toBe(0)
    for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(await fleet.violations()).toEqual([])
  })
})

describe('WORKERS on the embedded database', () => {
  test('more than one worker is refused with a hint on what to set, and auto means one process', async () => {
    await expect(startProcess({ WORKERS: '2' })).rejects.toThrow('WORKERS above 1 needs PostgreSQL')
    await expect(startProcess({ WORKERS: 'many' })).rejects.toThrow('WORKERS must be auto or a whole number from 1 to 64')
    const gateway = await startProcess({ WORKERS: 'auto' })
    expect(workersOf(gateway)).toEqual([])
    expect(await gateway.terminate()).toBe(0)
  })
})
