import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, type FleetReply, fleetAnswer, startFleet, tokenUinr, type UsageRow } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.ts'

const callTokens = 10
/** A caller of the gateway and the replies that it got, in order. */
interface Caller {
  readonly name: string
  readonly replies: FleetReply[]
  send(body?: object): Promise<FleetReply>
  owns(row: UsageRow): boolean
}

describe.runIf(onPostgres)('when the database is unavailable', () => {
  let fleet: Fleet
  let proxy: TcpProxy
  let gateway: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet()
    const target = new URL(fleet.database.url ?? '')
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    target.host = `127.0.0.1:${proxy.port}`
    gateway = await fleet.start({ DATABASE_URL: target.href, OFFLINE_MAX_MS: '6000', AGENT_STALE_MS: '3000', CACHE_TTL_MS: '1000' })
  })
  afterAll(async () => {
    await fleet?.stop()
    await proxy?.close()
  })
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  const accepted = (caller: Caller): number => caller.replies.filter(reply => reply.status === 200).length
  const rowsOf = async (callers: readonly Caller[]): Promise<UsageRow[]> => (await fleet.usage()).filter(row => callers.some(caller => caller.owns(row)))

  /** Makes three callers: one without limits, one whose budget and daily limit are leased in slices, and one with an agent token. */
  async function makeCallers(tag: string): Promise<{ free: Caller; budgeted: Caller; agent: Caller }> {
    const [free, limited, identity] = await Promise.all([
      fleet.newKey({}),
      fleet.newKey({ budgetInr: 1000, daily: 100_000 }),
      fleet.newAgent(`agent ${tag}`, null),
    ])
    const caller = (name: string, token: string, owns: Caller['owns']): Caller => ({
      name,
      replies: [],
      owns,
      send: (body = {}) => chat(gateway, token, callTokens, body),
    })
    return {
      free: caller('free', free.key, row => row.keyId === free.id),
      budgeted: caller('budgeted', limited.key, row => row.keyId === limited.id),
      agent: caller('agent', identity.token, row => row.agentId === identity.id),
    }
  }

  /** Sends one call of every caller after the other until `isEnough`. Every answer must be a normal reply or 503 database_unavailable. */
  async function keepCalling(callers: readonly Caller[], isEnough: () => boolean): Promise<void> {
    await until(async () => {
      await Promise.all(callers.map(async caller => caller.replies.push(await caller.send())))
      return isEnough()
    }, 60_000)
    for (const caller of callers)
      for (const reply of caller.replies) {
        if (reply.status === 200) continue
        expect([caller.name, reply.status, reply.json?.error?.code]).toEqual([caller.name, 503, 'database_unavailable'])
        expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0)
      }
  }

  /** Waits until every caller is served again. */
  async function backToNormal(callers: readonly Caller[]): Promise<void> {
    for (const caller of callers)
      await until(async () => {
        const reply = await caller.send()
        if (reply.status === 200) caller.replies.push(reply)
        return reply.status === 200
      }, 30_000)
  }

  /** Checks that every served call has a usage row with its value. */
  async function expectMetered(callers: readonly Caller[]): Promise<void> {
    const served = callers.reduce((sum, caller) => sum + accepted(caller), 0)
    expect(fleet.upstream.requests).toHaveLength(served)
    await until(async () => (await rowsOf(callers)).length === served)
    for (const row of await rowsOf(callers)) expect(row).toMatchObject({ outcome: 'ok', estimated: false, valueUinr: BigInt(callTokens) * tokenUinr })
    expect(await fleet.violations()).toEqual([])
  }

  const firstRefusal = (caller: Caller): number => caller.replies.findIndex(reply => reply.status === 503)
  const isRefused = (caller: Caller): boolean => caller.replies.at(-1)?.status === 503

  test('OPS-02 calls are served while their leases last, and then get 503 with retry-after; no recorded usage is lost', { timeout: 90_000 }, async () => {
    const { free, budgeted, agent } = await makeCallers('of the cut')
    const callers = [free, budgeted, agent]
    // These calls take the leases that serve later calls during the outage.
    await keepCalling(callers, () => free.replies.length === 20)
    expect(callers.every(caller => accepted(caller) === 20)).toBe(true)

    await proxy.cut()
    await keepCalling(callers, () => callers.every(isRefused))
    for (const caller of callers) expect(accepted(caller), caller.name).toBeGreaterThan(21)
    // The agent token is refused first, because the process has read no news. The other caller is refused only later, because the database is
    // unavailable.
    expect(firstRefusal(agent)).toBeLessThan(firstRefusal(free))
    for (const path of ['/v1/usage', '/v1/me/budgets', '/v1/me/agents']) {
      const reply = await call(gateway, fleet.key, 'GET', path)
      expect([path, reply.status, reply.json.error.code, Number(reply.headers.get('retry-after')) > 0]).toEqual([path, 503, 'database_unavailable', true])
    }
    // This process has never seen the key, and the key may be valid. So the error is not that the key is invalid.
    const stranger = await fleet.newKey({})
    expect((await call(gateway, stranger.key, 'GET', '/v1/me/whoami')).json.error.code).toBe('database_unavailable')
    expect((await call(gateway, fleet.key, 'GET', '/health')).status).toBe(200)

    await proxy.restore()
    await backToNormal(callers)
    await expectMetered(callers)
  })

  test('OPS-02 a running stream of a key survives the outage and is recorded after it; a stream of an agent is cut when the process has read no news for too long', {
    timeout: 90_000,
  }, async () => {
    const { free, agent } = await makeCallers('of the streams')
    fleet.upstream.script([1, 2].map(() => ({ chunks: ['first part ', 'second part'], holdAfterChunks: 1 })))
    const stream = (caller: Caller): Promise<FleetReply> => caller.send({ stream: true, stream_options: { include_usage: true } })
    const ofKey = stream(free)
    const ofAgent = stream(agent)
    await fleet.upstream.arrived(2)
    await proxy.cut()
    const cut = await ofAgent
    expect(cut.text).toContain('"code":"database_unavailable"')
    expect(cut.text.endsWith('data: [DONE]\n\n')).toBe(true)
    fleet.upstream.release()
    const whole = await ofKey
    expect(whole.text).toContain('second part')
    expect(whole.text).not.toContain('"error"')
    await proxy.restore()
    await until(async () => (await rowsOf([free, agent])).length === 2, 30_000)
    expect(await rowsOf([free])).toMatchObject([{ outcome: 'ok', estimated: false }])
    expect(await rowsOf([agent])).toMatchObject([{ outcome: 'cut', estimated: true }])
    expect(await fleet.violations()).toEqual([])
  })

  test('OPS-02 a stream that still runs when the outage lasts too long is ended in its own protocol, and its output is recorded once', {
    timeout: 90_000,
  }, async () => {
    const { free } = await makeCallers('of the long stream')
    fleet.upstream.script([{ chunks: ['first part ', 'second part'], holdAfterChunks: 1 }])
    const stream = free.send({ stream: true, stream_options: { include_usage: true } })
    await fleet.upstream.arrived(1)
    await proxy.cut()
    const ended = await stream
    expect(ended.text).toContain('first part')
    expect(ended.text).toContain('"code":"database_unavailable"')
    expect(ended.text.endsWith('data: [DONE]\n\n')).toBe(true)
    fleet.upstream.release()
    await proxy.restore()
    await until(async () => (await rowsOf([free])).length === 1, 30_000)
    expect(await rowsOf([free])).toMatchObject([{ outcome: 'cut', estimated: true }])
    expect(await fleet.violations()).toEqual([])
  })

  test('OPS-02 database connections that are open but silent count as an unavailable database, and delay no call that can be served', {
    timeout: 120_000,
  }, async () => {
    const { free, budgeted, agent } = await makeCallers('of the freeze')
    const callers = [free, budgeted, agent]
    await keepCalling(callers, () => free.replies.length === 20)
    proxy.freeze()
    await keepCalling(callers, () => callers.every(isRefused))
    for (const caller of callers) expect(accepted(caller), caller.name).toBeGreaterThan(21)
    expect(firstRefusal(agent)).toBeLessThan(firstRefusal(free))
    await proxy.restore()
    await backToNormal(callers)
    await expectMetered(callers)
  })
})
