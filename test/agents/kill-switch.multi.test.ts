import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ImageProviders, keys, startImageProviders } from '../gateway/inference/images/image-providers.ts'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call } from '../harness/fleet.ts'
import { allCalls, imageJob, panel, type RunningCall, stream, whole } from './kill-calls.ts'
import { cutDeadlineMs, type KillFleet, startKillFleet } from './kill-fleet.ts'

/** Output tokens of three chunks of four letters, a digit and a space, by the gateway's estimate. A digit counts as a token. */
const heldTokens = 8n

describe.runIf(onPostgres)('a revocation on another process', () => {
  let world: KillFleet
  let images: ImageProviders
  beforeAll(async () => {
    images = await startImageProviders()
    world = await startKillFleet(3, { ...images.env, IMAGE_POLL_MS: '50' })
  })
  afterAll(async () => {
    await world?.stop()
    await images?.close()
  })
  beforeEach(() => {
    for (const proxy of world.proxies) proxy.deafen(false)
    images.reset()
    images.pendingLooks = Number.POSITIVE_INFINITY
    images.answer(({ provider }) => (provider === 'together' ? 'hang' : undefined))
  })

  const allBegun = (calls: readonly RunningCall[]) => Promise.all(calls.map(({ begun }) => begun))
  const allCut = async (calls: readonly RunningCall[]): Promise<void> => {
    await until(() => calls.every(({ hasEnded }) => hasEnded()), cutDeadlineMs).catch(() => {
      throw new Error(`still running: ${calls.filter(({ hasEnded }) => !hasEnded()).map(({ name }) => name)}`)
    })
    await Promise.all(calls.map(({ cut }) => cut))
  }
  const looks = () => images.seen.filter(({ method }) => method === 'GET').length
  const drawing = () => images.of('together').length
  const callsOfAllKinds = async (token: string): Promise<RunningCall[]> => {
    const calls: RunningCall[] = []
    for (const process of world.processes.slice(1)) {
      const caller = { credential: token }
      calls.push(...allCalls(world.fleet, process, caller))
      // These calls begin one after the other, because their provider cannot tell who asked.
      for (const one of [() => imageJob(process, caller, keys['black-forest-labs'], looks), () => panel(process, caller, keys.together, drawing)]) {
        calls.push(one())
        await calls.at(-1)?.begun
      }
    }
    await allBegun(calls)
    return calls
  }

  test('KILL-01 a revocation cuts calls of every format on two other processes and closes their providers. Each call leaves exactly one event. Later calls are refused, even when notifications are lost', {
    timeout: 60_000,
  }, async () => {
    for (const isHeard of [true, false]) {
      for (const proxy of world.proxies) proxy.deafen(!isHeard)
      const swallowed = () => world.proxies.map(proxy => proxy.swallowed)
      const before = swallowed()
      const { id, token } = await world.fleet.newAgent(`of all kinds ${isHeard}`, 50)
      const calls = await callsOfAllKinds(token)
      const [here] = world.processes
      if (here === undefined) throw new Error('no process')
      await world.revoke(here, id)
      await allCut(calls)
      expect(swallowed().map((count, index) => count > (before[index] ?? 0))).toEqual(world.proxies.map(() => !isHeard))
      const looked = looks()
      expect(await world.nextCalls(token)).toEqual(world.processes.map(() => '401 agent_revoked'))
      await until(() => world.fleet.upstream.requests.every(({ aborted }) => aborted))
      expect(world.fleet.upstream.requests).toHaveLength(calls.filter(({ name }) => !/image|panel/.test(name)).length)
      await until(() => images.of('together').every(({ aborted }) => aborted))
      const events = calls.reduce((sum, { events }) => sum + events, 0)
      await until(async () => (await world.rowsOf([id])).length === events)
      const rows = await world.rowsOf([id])
      expect(rows.map(({ outcome }) => outcome)).toEqual(rows.map(() => 'cut'))
      // The streams. Each of them had sent three chunks to its client. The messages format reports one token before the chunks.
      expect(rows.filter(({ completionTokens }) => completionTokens === heldTokens || completionTokens === heldTokens + 1n).length).toBeGreaterThanOrEqual(12)
      await world.settled()
      expect(await world.rowsOf([id])).toEqual(rows)
      expect(looks()).toBe(looked)
      expect(await world.fleet.violations()).toEqual([])
    }
  })

  test('the revocation of an agent ends its children and grandchildren, and the calls of plain keys that name one of them', { timeout: 60_000 }, async () => {
    const { fleet, processes, newChild } = world
    const parent = await fleet.newAgent('family parent', null)
    const child = await newChild('family child', parent.id)
    const grandchild = await newChild('family grandchild', child.id)
    const other = await fleet.newAgent('family friend', null)
    const family = [parent, child, grandchild]
    // An agent chose the name of the grandchild, so only its id binds a key.
    const labels = ['family parent', String(grandchild.id)]
    const callers = [...family.map(({ token }) => ({ credential: token })), ...labels.map(label => ({ credential: fleet.key, label }))]
    const calls = processes
      .slice(1)
      .flatMap(process => callers.flatMap(caller => [stream(process, caller, 'chat', 'fixed-model'), whole(fleet, process, caller)]))
    const untouched = processes
      .slice(1)
      .flatMap(process => [
        stream(process, { credential: other.token }, 'chat', 'fixed-model'),
        stream(process, { credential: fleet.key }, 'chat', 'fixed-model'),
      ])
    await allBegun([...calls, ...untouched])
    await world.revoke(processes[0] as (typeof processes)[number], parent.id)
    await allCut(calls)
    for (const { token } of family) expect(await world.nextCalls(token)).toEqual(processes.map(() => '401 agent_revoked'))
    for (const label of labels) expect(await world.nextCalls(fleet.key, label)).toEqual(processes.map(() => '403 agent_revoked'))
    expect(untouched.some(({ hasEnded }) => hasEnded())).toBe(false)
    const ids = family.map(({ id }) => id)
    await until(async () => (await world.rowsOf(ids)).length === calls.length)
    await world.settled()
    await until(() => untouched.every(({ hasEnded }) => hasEnded()))
    const rows = await world.rowsOf(ids)
    expect(rows.map(({ outcome }) => outcome)).toEqual(calls.map(() => 'cut'))
    expect(await fleet.violations()).toEqual([])
  })

  test('the revocation of a key ends its streams and those of the tokens that it minted, and refuses their next calls', { timeout: 60_000 }, async () => {
    const { fleet, processes } = world
    const [here, ...others] = processes as [(typeof processes)[number], ...(typeof processes)[number][]]
    const minting = await fleet.newKey({})
    const { id } = await fleet.newAgent('of an ended key', null)
    const token = (await call(here, minting.key, 'POST', `/v1/me/agents/${id}/token`, {})).json.access_token
    const callers = [minting.key, token].map(credential => ({ credential, code: 'invalid_api_key' as const }))
    const calls = others.flatMap(process => callers.flatMap(caller => [stream(process, caller, 'chat', 'fixed-model'), whole(fleet, process, caller)]))
    await allBegun(calls)
    const cookie = await fleet.signIn()
    const revoked = await fetch(`${here.baseUrl}/me/keys/${minting.id}`, { method: 'DELETE', headers: { cookie } })
    expect(revoked.status).toBe(200)
    await allCut(calls)
    expect(await world.nextCalls(minting.key)).toEqual(processes.map(() => '401 invalid_api_key'))
    expect(await world.nextCalls(token)).toEqual(processes.map(() => '401 key_revoked'))
    await until(() => fleet.upstream.requests.every(({ aborted }) => aborted))
    await until(async () => (await fleet.usage()).filter(({ keyId }) => keyId === minting.id).length === calls.length)
    await world.settled()
    expect((await fleet.usage()).filter(({ keyId }) => keyId === minting.id).map(({ outcome }) => outcome)).toEqual(calls.map(() => 'cut'))
  })

  test('a hundred concurrent revocations on three processes each cut one stream on another process, and nothing else is charged', {
    timeout: 120_000,
  }, async () => {
    const { fleet, processes } = world
    const at = (index: number) => processes[index % processes.length] as (typeof processes)[number]
    const agents: { id: number; token: string }[] = []
    for (let index = 0; index < 100; index++) agents.push(await fleet.newAgent(`one of a hundred ${index}`, null))
    const calls = agents.map(({ token }, index) => stream(at(index), { credential: token }, 'chat', 'fixed-model'))
    await allBegun(calls)
    await Promise.all(agents.map(({ id }, index) => world.revoke(at(index + 1), id)))
    await allCut(calls)
    for (const { token } of agents) expect(await world.nextCalls(token)).toEqual(processes.map(() => '401 agent_revoked'))
    await until(() => fleet.upstream.requests.every(({ aborted }) => aborted))
    const ids = agents.map(({ id }) => id)
    await until(async () => (await world.rowsOf(ids)).length === 100)
    await world.settled()
    const rows = await world.rowsOf(ids)
    expect(new Set(rows.map(({ agentId }) => agentId)).size).toBe(100)
    for (const row of rows) expect(row).toMatchObject({ outcome: 'cut', completionTokens: heldTokens, valueUinr: heldTokens * 100n })
    expect(await fleet.violations()).toEqual([])
  })

  test('a process that starts while agents are revoked knows all revocations', { timeout: 60_000 }, async () => {
    const { fleet, processes } = world
    const agents: { id: number; token: string }[] = []
    for (let index = 0; index < 60; index++) agents.push(await fleet.newAgent(`revoked at a start ${index}`, null))
    let isUp = false
    const starting = world.startOneMore().then(process => {
      isUp = true
      return process
    })
    const revoked: string[] = []
    while (!isUp && revoked.length < agents.length) {
      const { id, token } = agents[revoked.length] as { id: number; token: string }
      await world.revoke(processes[0] as (typeof processes)[number], id)
      revoked.push(token)
    }
    const late = await starting
    expect(revoked.length).toBeGreaterThan(0)
    const reasonOf = async (token: string) => (await call(late, token, 'GET', '/v1/me/whoami')).json.reason
    for (const token of revoked) await until(async () => (await reasonOf(token)) === 'agent_revoked', cutDeadlineMs)
  })
})
