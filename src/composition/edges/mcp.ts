/** Constructs the MCP server: tools, resources, prompts and change notifications, all based on the endpoint rows. */

import type { Binding, EdgeDeps } from '../../gateway/http/edge.ts'
import { RowInvoker } from '../../gateway/http/rows/row-invoker.ts'
import type { McpPaths } from '../../gateway/http/server.ts'
import { gatewaySurface } from '../../mcp/gateway-surface.ts'
import { mountedSlugOf } from '../../mcp/mount/mounted-surface.ts'
import { type MountedServers, serverMount } from '../../mcp/mount/server-mount.ts'
import type { MemoryWatch } from '../../mcp/news/memory-news.ts'
import type { ToolWatch } from '../../mcp/tools/toolbox/tool-watch.ts'
import { mcpTools } from '../../mcp/tools/tools.ts'
import { bearerMount, createMcp, type Mcp } from '../../mcp/transport/transport.ts'
import { readablePrefixes } from '../../memory/access/path-rules.ts'
import type { Memory } from '../../memory/memory.ts'
import type { Config } from '../../platform/config.ts'
import { version } from '../../version.ts'
import type { ProcessBounds } from '../bounds.ts'
import type { AppDeps } from '../deps.ts'
import type { Domains } from '../domains.ts'

export function mcpOf(
  { config, ids, clock, log }: AppDeps,
  { inflight, agents, memory, limits, founders }: Domains,
  edge: EdgeDeps & Pick<ProcessBounds, 'polls'>,
  bindings: readonly Binding[],
  watch: ToolWatch | undefined,
): Mcp {
  const objectMaxBytes = config.MEMORY_MCP_MAX_BYTES
  return createMcp({
    surfaceOf: gatewaySurface({
      tools: mcpTools(objectMaxBytes),
      invoker: new RowInvoker(edge, bindings),
      clock,
      log,
      watch,
      beyondTools: {
        polls: edge.polls,
        founderOf: founders.known,
        memory: memoryWatch(memory),
        objectMaxBytes,
      },
    }),
    ids,
    clock,
    log,
    inflight,
    bodies: edge.bodies,
    connections: edge.connections,
    streamPlaces: edge.streamPlaces,
    unread: edge.unread,
    changeStreamsMax: config.CHANGE_STREAMS_MAX,
    founderOf: founders.known,
    baseUrl: edge.baseUrl,
    allowedHosts: config.ALLOWED_HOSTS,
    serviceId: config.SERVICE_ID,
    version,
    authenticate: edge.authenticate,
    clientIp: edge.clientIp,
    countAnonymous: edge.countAnonymous,
    takeRate: edge.takeRate,
    holdStream: orgId => limits.streams.holdStream(orgId),
    recheck: principal => agents.tokens.recheck(principal),
    placeOf: edge.placeOf,
    isDraining: edge.isDraining,
  })
}

/** Returns the MCP handler of one server of an organisation. */
export function mcpOfServer({ SERVICE_ID: serviceId }: Config, mcp: Mcp, servers: MountedServers, { authenticate }: EdgeDeps): McpPaths['ofServer'] {
  const base = bearerMount({ authenticate, serviceId })
  // A path that is one of these only after decoding has the slug of no server.
  return (slug, request, response) => void mcp.handle(request, response, serverMount(mountedSlugOf(request.url) === slug ? slug : '', base, servers))
}

function memoryWatch({ changes, callers, isConfigured }: Memory): MemoryWatch {
  return {
    on: (orgId, listener) => changes.on(orgId, listener),
    scopesOf: async principal => ((await isConfigured(principal.orgId)) ? readablePrefixes(await callers.of(principal)) : []),
  }
}
