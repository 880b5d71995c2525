import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import type { ControlLog } from '../../../platform/db/db-control-log.ts'
import { ExpiringCache } from '../../../platform/loop/expiring-cache.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { Secret } from '../../../platform/security/secret.ts'
import type { Sealer } from '../../../platform/security/secrets.ts'
import type { AuthKind, CallableTool, OrgTools, ToolCatalog } from './callable-tool.ts'
import { type CallableRow, type CallableServerRow, listCallableServers, listCallableTools } from './catalog-queries.ts'
import { openCredential } from './tool-credential.ts'
import { orgToolsChanged } from './tool-news.ts'

export interface MemoryCatalogDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** The setting TOOL_GATEWAY. When it is false, no organisation has tools. */
  readonly enabled: boolean
  /** The setting TOOL_TIMEOUT_MS, for servers without a time of their own. */
  readonly timeoutMs: number
}

const orgsMax = 10_000
/** Maximum number of bytes of the tools of all cached organisations. */
const cachedBytesMax = 256 * 1024 * 1024
/** Bytes in memory of a tool without its definition. */
const toolBytes = 1_024
/** Bytes in memory of a byte of JSON that is parsed. The factor is an estimate. */
const parsedFactor = 4
/**
 * Lifetime of the cached tools of an organisation. It is long, because the news of every change drops them, and a gap in the news drops all. A look-up in
 * the second half of it loads them again, in the background.
 */
const ttlMs = 10 * 60_000
/** Number of tools that one statement reads. */
const pageTools = 200

/** The tools that can be called, as this process keeps them in memory, organisation by organisation. Decision 0785 says why. */
export class MemoryCatalog implements ToolCatalog {
  readonly #deps: MemoryCatalogDeps
  readonly #cache: ExpiringCache<number, CachedTools>

  constructor(deps: MemoryCatalogDeps) {
    this.#deps = deps
    this.#cache = new ExpiringCache({
      max: orgsMax,
      bytes: { max: cachedBytesMax, sizeOf: tools => tools.sizeBytes },
      ttlMs,
      clock: deps.clock,
      load: orgId => this.#load(orgId),
    })
    deps.controlLog.on(news => {
      if (news.kind === orgToolsChanged) this.#cache.invalidate(Number(news.ref))
    })
    deps.controlLog.onGap(() => this.#cache.clear())
  }

  async of(orgId: number): Promise<OrgTools> {
    if (!this.#deps.enabled) return noTools
    return (await this.#cache.get(orgId)) ?? noTools
  }

  async #load(orgId: number): Promise<CachedTools> {
    const { db } = this.#deps
    const servers = new Map((await db.many(listCallableServers, orgId)).map(server => [server.id, server]))
    const credentials = this.#openAll(orgId, servers)
    const tools: CallableTool[] = []
    let sizeBytes = toolBytes
    for (let after: string | null = servers.size === 0 ? null : ''; after !== null; ) {
      const rows: CallableRow[] = await db.many(listCallableTools, orgId, after, pageTools)
      for (const row of rows) {
        const server = servers.get(row.serverId)
        if (server === undefined) continue
        tools.push(this.#callable(row, server))
        sizeBytes += toolBytes + parsedFactor * row.definitionBytes
      }
      after = rows.length < pageTools ? null : (rows.at(-1)?.publicName ?? null)
    }
    return new CachedTools(tools, credentials, new Map([...servers].map(([id, { authKind }]) => [id, authKind])), sizeBytes)
  }

  /** Opens the headers of servers. A server whose header cannot be opened is taken out of `servers` and logged. */
  #openAll(orgId: number, servers: Map<string, CallableServerRow>): ReadonlyMap<string, OpenCredential> {
    const open = new Map<string, OpenCredential>()
    for (const server of servers.values()) {
      try {
        const credential = openCredential(this.#deps.sealer, orgId, server)
        if (credential !== null) open.set(server.id, { name: credential.name, value: new Secret(credential.value) })
      } catch {
        this.#deps.log.warn('tool_server_header_unreadable', { orgId, provider: `mcp:${server.slug}` })
        servers.delete(server.id)
      }
    }
    return open
  }

  #callable({ toolId, serverId, upstreamName, publicName, definition, hash }: CallableRow, server: CallableServerRow): CallableTool {
    const { slug, priceUinr, url, residency } = server
    const timeoutMs = server.timeoutMs ?? this.#deps.timeoutMs
    return { toolId: String(toolId), serverId, slug, upstreamName, publicName, definition, hash, priceUinr, timeoutMs, url, residency }
  }
}

interface OpenCredential {
  readonly name: string
  readonly value: Secret
}

class CachedTools implements OrgTools {
  readonly sizeBytes: number
  readonly #byName: ReadonlyMap<string, CallableTool>
  readonly #all: readonly CallableTool[]
  readonly #credentials: ReadonlyMap<string, OpenCredential>
  readonly #authKinds: ReadonlyMap<string, AuthKind>

  constructor(tools: readonly CallableTool[], credentials: ReadonlyMap<string, OpenCredential>, authKinds: ReadonlyMap<string, AuthKind>, sizeBytes: number) {
    this.#all = [...tools].sort((a, b) => (a.publicName < b.publicName ? -1 : 1))
    this.#byName = new Map(tools.map(tool => [tool.publicName, tool]))
    this.#credentials = credentials
    this.#authKinds = authKinds
    this.sizeBytes = sizeBytes
  }

  byName(publicName: string): CallableTool | undefined {
    return this.#byName.get(publicName)
  }

  all(): readonly CallableTool[] {
    return this.#all
  }

  credential(serverId: string) {
    const found = this.#credentials.get(serverId)
    return found === undefined ? null : { name: found.name, value: found.value.reveal() }
  }

  authKind(serverId: string): AuthKind {
    return this.#authKinds.get(serverId) ?? 'none'
  }
}

const noTools: OrgTools = new CachedTools([], new Map(), new Map(), 0)
