import type { Db } from '../../../platform/db/db.ts'
import { fail, type GatewayError } from '../../../platform/errors.ts'
import { Cancellation, type CancelSignal } from '../../../platform/loop/cancellation.ts'
import { CallCutError, everyToolCall, type Inflight } from '../../../platform/loop/inflight.ts'
import type { BearerPrincipal } from '../../../platform/security/principal.ts'
import { serverPatternOf } from '../../../platform/security/tool-patterns.ts'
import type { ServerCircuits } from '../calls/server-circuits.ts'
import type { ToolCallContext, ToolCallerContext, ToolCalls } from '../calls/tool-calls.ts'
import { toolConnectionOwner, toolServerOwner } from '../calls/tool-cuts.ts'
import type { ToolCredentials } from '../oauth/tool-credentials.ts'
import type { ToolCatalog } from '../registry/callable-tool.ts'
import type { Upstreams } from '../upstream/upstream.ts'
import { findMountedServer, type MountedServer } from './mount-queries.ts'
import { readFailure } from './read-failure.ts'
import type { ServerRead } from './read-request.ts'

export interface ServerReadsDeps {
  readonly db: Db
  readonly catalog: ToolCatalog
  readonly calls: Pick<ToolCalls, 'callerOf' | 'requireOn'>
  readonly upstreams: Pick<Upstreams, 'read'>
  readonly circuits: ServerCircuits
  readonly inflight: Inflight
  /** The settings TOOL_TIMEOUT_MS and TOOL_RESULT_MAX_BYTES. */
  readonly timeoutMs: number
  readonly maxResultBytes: number
  readonly credentials: Pick<ToolCredentials, 'of'>
  /** True while this process has no news of the control log. */
  isStale(): boolean
  /** Throws when the caller was revoked since the read began. */
  recheck(principal: BearerPrincipal): void
}

const slugShape = /^[a-z][a-z0-9-]{0,15}$/
/** The caller of a read. */
export type ReadContext = Pick<ToolCallContext, 'principal' | 'agentLabel' | 'signal'>

/**
 * One server alone, with its resources and prompts. They are read when somebody asks, pass through, and are never kept. A caller needs a rule that covers the whole
 * server, because nobody approves a resource. Decision 0839 gives the reasons.
 */
export class ServerReads {
  readonly #deps: ServerReadsDeps

  constructor(deps: ServerReadsDeps) {
    this.#deps = deps
  }

  /** Throws `unavailable` while the tool gateway is switched off. */
  requireOn(): void {
    this.#deps.calls.requireOn()
  }

  /**
   * Throws `not_found` unless the organisation of the caller has this server switched on, and the rules of the caller cover it or allow one of its approved
   * tools. A server of another organisation and an unknown slug have one answer.
   */
  async require(context: ToolCallerContext, slug: string): Promise<void> {
    const { catalog, calls, db } = this.#deps
    const { principal, allows } = await calls.callerOf(context)
    if (!slugShape.test(slug)) throw noServer()
    const tools = (await catalog.of(principal.orgId)).all()
    if (tools.some(tool => tool.slug === slug && allows(tool.publicName))) return
    if (!allows(patternOf(slug)) || (await db.maybe(findMountedServer, principal.orgId, slug)) === null) throw noServer()
  }

  /** Reads resources or prompts of a server once. Throws `not_found`, and the failures of the server. */
  async read(context: ReadContext, slug: string, read: Omit<ServerRead, 'maxResultBytes'>): Promise<Record<string, unknown>> {
    const { catalog, calls, circuits, upstreams, maxResultBytes } = this.#deps
    const { principal, allows } = await calls.callerOf(context)
    const server = allows(patternOf(slug)) ? await this.#find(principal.orgId, slug) : null
    if (server === null) throw noServer()
    const tools = await catalog.of(principal.orgId)
    // The catalog has the credential of its own address, which may be older or newer than the one that was found.
    const known = tools.all().find(({ serverId }) => serverId === server.id)
    if (known !== undefined && known.url !== server.url) throw new CallCutError('tool_server_changed')
    const { circuit, connectionId, header } = await this.#deps.credentials.of(
      principal.orgId,
      tools,
      { serverId: server.id, slug, url: server.url },
      principal.userId,
    )
    circuits.check(circuit)
    const { signal, end } = this.#watch(server, connectionId, context.signal)
    try {
      this.#deps.recheck(principal)
      // The server may have been switched off before the read was registered. Whatever changes later cuts it.
      const now = await this.#find(principal.orgId, slug)
      if (now === null) throw noServer()
      if (now.url !== server.url) throw new CallCutError('tool_server_changed')
      if (this.#deps.isStale()) throw new CallCutError('tools_stale')
      signal.throwIfAborted()
      const target = { url: server.url, header: await header(signal), timeoutMs: server.timeoutMs ?? this.#deps.timeoutMs }
      const value = await upstreams.read(target, { ...read, maxResultBytes }, signal)
      circuits.succeeded(circuit)
      return value
    } catch (thrown) {
      const { error, isOfServer } = readFailure(thrown, maxResultBytes)
      if (isOfServer) circuits.failed(circuit)
      throw error
    } finally {
      end()
    }
  }

  #find(orgId: number, slug: string): Promise<MountedServer | null> {
    return slugShape.test(slug) ? this.#deps.db.maybe(findMountedServer, orgId, slug) : Promise.resolve(null)
  }

  /** Registers the read under its server and its connection, so that the switch of the server and a revoke of the connection end it. */
  #watch({ id }: MountedServer, connectionId: string | null, outer: CancelSignal): { readonly signal: Cancellation; end(): void } {
    const cut = new Cancellation()
    const onAbort = (): void => cut.abort(outer.reason)
    if (outer.aborted) onAbort()
    else outer.addEventListener('abort', onAbort, { once: true })
    const ofConnection = connectionId === null ? [] : [toolConnectionOwner(connectionId)]
    const unregister = this.#deps.inflight.register({ agentIds: [], keyId: null, tokenIds: [toolServerOwner(id), everyToolCall, ...ofConnection] }, cut)
    return {
      signal: cut,
      end() {
        unregister()
        outer.removeEventListener('abort', onAbort)
      },
    }
  }
}

/** The pattern of `allowed_tools` that covers a whole server. */
const patternOf = (slug: string): string => serverPatternOf(`${slug}__`)

const noServer = (): GatewayError => fail('not_found', { message: 'There is no such MCP server for this credential.' })
