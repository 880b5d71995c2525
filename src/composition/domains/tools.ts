import { ServerCircuits } from '../../gateway/tools/calls/server-circuits.ts'
import { ToolCalls } from '../../gateway/tools/calls/tool-calls.ts'
import { cutToolCalls } from '../../gateway/tools/calls/tool-cuts.ts'
import { createToolRegistry, type ToolRegistry } from '../../gateway/tools/registry/create-tool-registry.ts'
import { createUpstreams, type Upstreams } from '../../gateway/tools/upstream/upstream.ts'
import { version } from '../../version.ts'
import type { AppParts } from '../parts.ts'

/** Constructs the registry of MCP servers and the calls of their tools, with the client that dials them. */
export function toolServices(parts: AppParts): ToolRegistry & { readonly toolCalls: ToolCalls } {
  const { outbound, clock } = parts
  const upstreams = createUpstreams({ outbound, clock, version })
  const registry = createToolRegistry({ ...parts, upstreams })
  return { ...registry, toolCalls: toolCallsOf(parts, upstreams, registry) }
}

function toolCallsOf(parts: AppParts, upstreams: Upstreams, { toolCatalog, toolCredentials }: ToolRegistry): ToolCalls {
  const { clock, ids, config, limits, inflight, agents, controlLog } = parts
  cutToolCalls(controlLog, inflight)
  return new ToolCalls({
    clock,
    ids,
    catalog: toolCatalog,
    credentials: toolCredentials,
    upstreams,
    circuits: new ServerCircuits({ clock, failuresToOpen: config.CIRCUIT_FAILURES, openMs: config.CIRCUIT_OPEN_MS }),
    limits,
    inflight,
    isOn: config.TOOL_GATEWAY,
    maxResultBytes: config.TOOL_RESULT_MAX_BYTES,
    agentByLabel: (orgId, label) => agents.byLabel(orgId, label),
    recheck: principal => agents.tokens.recheck(principal),
    isStale: () => agents.killSwitch.isStale(),
  })
}
