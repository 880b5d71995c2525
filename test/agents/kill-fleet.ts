import { statement } from '../../src/platform/db/db.ts'
import { until } from '../harness/app.ts'
import { type DeafProxy, startDeafProxy } from '../harness/deaf-proxy.ts'
import { call, chat, type Fleet, fleetAnswer, startFleet, type UsageRow } from '../harness/fleet.ts'
import type { GatewayProcess } from '../harness/process.ts'
import { heldAnswer, writeKillConfig } from './kill-calls.ts'

/** The longest allowed time from a revocation to the end of running calls on another process, with or without notifications. */
export const cutDeadlineMs = 2000

const setParent = statement<[childId: number, parentId: number]>('test.kill_fleet_set_parent', 'update agents set parent_id = $2::int where id = $1::int')

/** Gateway processes on one database. Each process except the first connects through a proxy that can drop notifications. */
export interface KillFleet {
  readonly fleet: Fleet
  readonly processes: readonly GatewayProcess[]
  /** The proxies of all processes after the first, in the same order. */
  readonly proxies: readonly DeafProxy[]
  /** Starts one more process that connects to the database directly. */
  startOneMore(): Promise<GatewayProcess>
  /** Creates an agent below another one. Its token names its ancestors. */
  newChild(name: string, parentId: number): Promise<{ id: number; token: string }>
  revoke(process: GatewayProcess, agentId: number): Promise<void>
  /** Returns how the next call of a credential on each process ends: `401 agent_revoked`, `403 agent_revoked` or `200`. */
  nextCalls(credential: string, label?: string): Promise<readonly string[]>
  rowsOf(agentIds: readonly number[]): Promise<UsageRow[]>
  /** Releases the provider, and waits until every process has written its records. No earlier record can arrive after that. */
  settled(): Promise<void>
  stop(): Promise<void>
}

/** Starts `count` processes. Settings have their defaults unless `env` changes them, except that the poll interval is 1 second. */
export async function startKillFleet(count: number, env: Readonly<Record<string, string>> = {}): Promise<KillFleet> {
  const fleet = await startFleet({ CONTROL_POLL_MS: '1000', ...env })
  const settings = { CONFIG_FILE: writeKillConfig(fleet) }
  const target = new URL(fleet.database.url ?? '')
  const first = await fleet.start(settings)
  const proxies = await Promise.all(Array.from({ length: count - 1 }, () => startDeafProxy({ host: target.hostname, port: Number(target.port) })))
  const others = await Promise.all(
    proxies.map(({ port }) => {
      const through = new URL(target)
      through.host = `127.0.0.1:${port}`
      return fleet.start({ ...settings, DATABASE_URL: through.href })
    }),
  )
  const processes = [first, ...others]
  fleet.upstream.script(heldAnswer)
  let settlings = 0
  const rowsOf = async (agentIds: readonly number[]) => (await fleet.usage()).filter(({ agentId }) => agentId !== null && agentIds.includes(agentId))
  return {
    fleet,
    processes,
    proxies,
    rowsOf,
    startOneMore: () => fleet.start(settings),
    async newChild(name, parentId) {
      const { id } = (await call(first, fleet.key, 'POST', '/v1/me/agents', { name })).json
      await fleet.db.exec(setParent, id, parentId)
      return { id, token: (await call(first, fleet.key, 'POST', `/v1/me/agents/${id}/token`, {})).json.access_token }
    },
    async revoke(process, agentId) {
      const { status, text } = await call(process, fleet.key, 'POST', `/v1/me/agents/${agentId}/revoke`, {})
      if (status !== 200) throw new Error(`the revoke failed: ${status} ${text}`)
    },
    nextCalls: (credential, label) =>
      Promise.all(
        processes.map(async process => {
          const { status, json } = await chat(process, credential, 10, {}, label === undefined ? {} : { 'x-br-agent-id': label })
          return status === 200 ? '200' : `${status} ${json.reason ?? json.error.code}`
        }),
      ),
    async settled() {
      fleet.upstream.script(fleetAnswer)
      fleet.upstream.release()
      settlings++
      const markers = await Promise.all(processes.map((_, index) => fleet.newAgent(`marker ${settlings} ${index}`, null)))
      await Promise.all(processes.map((process, index) => chat(process, markers[index]?.token ?? '', 10)))
      await until(async () => (await rowsOf(markers.map(({ id }) => id))).length === processes.length)
      fleet.upstream.reset()
      fleet.upstream.script(heldAnswer)
    },
    async stop() {
      await fleet.stop()
      await Promise.all(proxies.map(proxy => proxy.close()))
    },
  }
}
