/** Composition of the MCP server: tools, resources, prompts and news over the endpoint rows. */
import type { AppDeps } from './app-deps.ts'
import type { Domains } from './app-domains.ts'
import type { Binding, EdgeDeps } from './gateway/http/edge.ts'
import { makeInvoke } from './gateway/http/invoke.ts'
import { gatewaySurface } from './mcp/gateway-surface.ts'
import type { MemoryWatch } from './mcp/news/memory-news.ts'
import type { ToolWatch } from './mcp/tools/tool-watch.ts'
import { mcpTools } from './mcp/tools/tools.ts'
import { createMcp, type Mcp } from './mcp/transport.ts'
import type { Memory } from './memory/memory.ts'
import { readablePrefixes } from './memory/scopes.ts'
import { version } from './version.ts'

export function mcpOf(
  { config, ids, clock, log }: AppDeps,
  { inflight, agents, memory }: Domains,
  edge: EdgeDeps,
  bindings: readonly Binding[],
  watch: ToolWatch | undefined,
): Mcp {
  const objectMaxBytes = config.MEMORY_MCP_MAX_BYTES
  return createMcp({
    surfaceOf: gatewaySurface({
      tools: mcpTools(objectMaxBytes),
      invoke: makeInvoke(edge, bindings),
      clock,
      log,
      watch,
      beyondTools: { memory: memoryWatch(memory), peek: makeInvoke({ ...edge, takeRate: () => undefined }, bindings), objectMaxBytes },
    }),
    ids,
    clock,
    log,
    inflight,
    baseUrl: edge.baseUrl,
    allowedHosts: config.ALLOWED_HOSTS,
    serviceId: config.SERVICE_ID,
    version,
    authenticate: edge.authenticate,
    clientIp: edge.clientIp,
    countAnonymous: edge.countAnonymous,
    recheck: principal => agents.tokens.recheck(principal),
    placeOf: edge.placeOf,
    isDraining: edge.isDraining,
  })
}

function memoryWatch({ changes, callers, isConfigured }: Memory): MemoryWatch {
  return {
    on: (orgId, listener) => changes.on(orgId, listener),
    scopesOf: async principal => ((await isConfigured(principal.orgId)) ? readablePrefixes(await callers.of(principal)) : []),
  }
}
