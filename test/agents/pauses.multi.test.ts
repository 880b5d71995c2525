import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat } from '../harness/fleet.ts'
import { stream } from './kill-calls.ts'
import { cutDeadlineMs, type KillFleet, startKillFleet } from './kill-fleet.ts'

describe.runIf(onPostgres)('a pause on another process', () => {
  let world: KillFleet
  beforeAll(async () => {
    world = await startKillFleet(2)
  })
  afterAll(() => world?.stop())

  test('EDGE-20 a pause cuts running calls on another process and refuses the next one there, even when notifications are lost or the process starts meanwhile. A resume allows calls again', {
    timeout: 60_000,
  }, async () => {
    const [here, there] = world.processes
    if (here === undefined || there === undefined) throw new Error('no process')
    for (const isHeard of [true, false]) {
      for (const proxy of world.proxies) proxy.deafen(!isHeard)
      const { id, token } = await world.fleet.newAgent(`paused ${isHeard}`, 50)
      const running = stream(there, { credential: token, code: 'agent_paused' }, 'chat', 'fixed-model')
      await running.begun
      expect((await call(here, world.fleet.key, 'POST', `/v1/me/agents/${id}/pause`, undefined)).status).toBe(200)
      await until(() => running.hasEnded(), cutDeadlineMs)
      await running.cut
      expect(await world.nextCalls(token)).toEqual(['403 agent_paused', '403 agent_paused'])
      expect(await world.nextCalls(world.fleet.key, String(id))).toEqual(['403 agent_paused', '403 agent_paused'])
      const late = await world.startOneMore()
      expect((await chat(late, token, 10)).json.error.code).toBe('agent_paused')
      expect((await call(late, world.fleet.key, 'POST', `/v1/me/agents/${id}/resume`, undefined)).status).toBe(200)
      for (const process of [here, there, late])
        await until(async () => (await call(process, token, 'GET', '/v1/me/whoami', undefined)).status === 200, cutDeadlineMs)
    }
    await world.settled()
  })
})
