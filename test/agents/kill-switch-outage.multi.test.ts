import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../harness/app.ts'
import { onPostgres } from '../harness/database.ts'
import { call, chat, type Fleet, startFleet } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.ts'
import { heldAnswer, stream, writeKillConfig } from './kill-calls.ts'

const patienceMs = 30_000

describe.runIf(onPostgres)('a process that has lost the database, and with it the news of agents', () => {
  let fleet: Fleet
  let proxy: TcpProxy
  let here: GatewayProcess
  let away: GatewayProcess
  beforeAll(async () => {
    fleet = await startFleet({ CONTROL_POLL_MS: '1000', AGENT_STALE_MS: '2000', OFFLINE_MAX_MS: '60000' })
    const target = new URL(fleet.database.url ?? '')
    proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) })
    const settings = { CONFIG_FILE: writeKillConfig(fleet) }
    here = await fleet.start(settings)
    target.host = `127.0.0.1:${proxy.port}`
    away = await fleet.start({ ...settings, DATABASE_URL: target.href })
  })
  afterAll(async () => {
    await fleet?.stop()
    await proxy?.close()
  })

  const statusOf = async (credential: string, label?: string): Promise<string> => {
    const { status, json } = await chat(away, credential, 10, {}, label === undefined ? {} : { 'x-br-agent-id': label })
    return status === 200 ? '200' : `${status} ${json.reason ?? json.error.code}`
  }

  for (const loss of ['cut', 'freeze'] as const) {
    test(`when the database ${loss === 'cut' ? 'refuses connections' : 'does not answer'}, agents are cut and get 503, and keys continue. A revocation during the outage applies when the database is back`, {
      timeout: 120_000,
    }, async () => {
      const [staying, ending] = [await fleet.newAgent(`staying ${loss}`, null), await fleet.newAgent(`ending ${loss}`, null)]
      const label = `staying ${loss}`
      fleet.upstream.script({})
      fleet.upstream.reset()
      // Calls before the outage fill the caches of the process.
      for (const [credential, name] of [[staying.token], [ending.token], [fleet.key], [fleet.key, label]] as const)
        expect(await statusOf(credential, name)).toBe('200')
      fleet.upstream.script(heldAnswer)
      const told = 'database_unavailable' as const
      const cut = [
        { credential: staying.token, code: told },
        { credential: ending.token, code: told },
        { credential: fleet.key, label, code: told },
      ].map(caller => stream(away, caller, 'chat', 'fixed-model'))
      const ofKey = stream(away, { credential: fleet.key }, 'chat', 'fixed-model')
      await Promise.all([...cut, ofKey].map(({ begun }) => begun))
      fleet.upstream.script(() => ({}))

      await (loss === 'cut' ? proxy.cut() : proxy.freeze())
      await until(() => cut.every(({ hasEnded }) => hasEnded()), patienceMs)
      await Promise.all(cut.map(call => call.cut))
      for (const { token } of [staying, ending]) expect(await statusOf(token)).toBe('503 database_unavailable')
      expect(await statusOf(fleet.key, label)).toBe('503 database_unavailable')
      expect(await statusOf(fleet.key)).toBe('200')
      expect(ofKey.hasEnded()).toBe(false)

      expect((await call(here, fleet.key, 'POST', `/v1/me/agents/${ending.id}/revoke`, {})).status).toBe(200)
      await proxy.restore()
      // The revoked agent is never admitted while the process recovers.
      const seen = new Set<string>()
      await until(async () => {
        seen.add(await statusOf(ending.token))
        return seen.has('401 agent_revoked')
      }, patienceMs)
      expect([...seen].every(answer => answer === '503 database_unavailable' || answer === '401 agent_revoked')).toBe(true)
      await until(async () => (await statusOf(staying.token)) === '200', patienceMs)
      expect(await statusOf(fleet.key, label)).toBe('200')
      expect(await statusOf(fleet.key, `ending ${loss}`)).toBe('403 agent_revoked')
      fleet.upstream.release()
      await until(() => ofKey.hasEnded())
      const rowsOf = async (id: number) => (await fleet.usage()).filter(({ agentId }) => agentId === id)
      await until(async () => (await rowsOf(ending.id)).length === 2 && (await rowsOf(staying.id)).length >= 6, patienceMs)
      expect((await rowsOf(ending.id)).map(({ outcome }) => outcome).sort()).toEqual(['cut', 'ok'])
      expect((await rowsOf(staying.id)).filter(({ outcome }) => outcome === 'cut')).toHaveLength(2)
      expect(await fleet.violations()).toEqual([])
    })
  }
})
