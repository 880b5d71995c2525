import { Catalog, type RouteState } from './gateway/catalog/catalog.ts'
import { loadCatalog } from './gateway/catalog/load.ts'
import { findLocalServers } from './gateway/catalog/local-servers.ts'
import type { RouteId } from './gateway/catalog/model.ts'
import { sandboxIsWanted, sandboxProvider } from './gateway/catalog/sandbox.ts'
import type { Clock } from './platform/clock.ts'
import type { Config } from './platform/config.ts'
import type { Ids } from './platform/ids.ts'
import type { Log } from './platform/log.ts'
import type { Outbound } from './platform/outbound.ts'
import { startSandbox } from './sandbox/sandbox.ts'

interface CatalogStart {
  readonly config: Config
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly outbound: Outbound
  healthOf(id: RouteId): RouteState
}

/** Largest list of models that is read from a local server. */
const listMaxBytes = 1024 * 1024

/** The catalog of this process: data, operator's file, local servers that answer, and the sandbox when it is wanted. */
export async function startCatalog(start: CatalogStart): Promise<{ catalog: Catalog; stopSandbox: () => Promise<void> }> {
  const { config, clock, ids, outbound } = start
  const getJson = async (url: string, timeoutMs: number): Promise<unknown> => {
    const reply = await outbound.toProvider({ method: 'GET', url, headers: { accept: 'application/json' }, signal: AbortSignal.timeout(timeoutMs) })
    if (reply.status !== 200) {
      reply.body.destroy()
      throw new Error(`status ${reply.status}`)
    }
    return JSON.parse((await reply.body.buffer(listMaxBytes)).toString('utf8'))
  }
  const local = config.LOCAL_SERVERS ? await findLocalServers({ config, getJson, ownPorts: [config.PORT] }) : []
  const base = loadCatalog({ config, clock, extraProviders: local })
  if (!sandboxIsWanted(config, base)) return { catalog: new Catalog(base, start.healthOf), stopSandbox: () => Promise.resolve() }
  const sandbox = await startSandbox({ clock, ids, host: '127.0.0.1' })
  const snapshot = loadCatalog({ config, clock, extraProviders: [...local, sandboxProvider(sandbox.url)] })
  return { catalog: new Catalog(snapshot, start.healthOf), stopSandbox: () => sandbox.close() }
}
