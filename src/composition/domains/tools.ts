import { toolRulesOf } from '../../agents/listing/tool-rules.ts'
import { ServerCircuits } from '../../gateway/tools/calls/server-circuits.ts'
import { ToolCalls } from '../../gateway/tools/calls/tool-calls.ts'
import { cutToolCalls } from '../../gateway/tools/calls/tool-cuts.ts'
import { ToolQuestions } from '../../gateway/tools/calls/tool-questions.ts'
import { ServerReads } from '../../gateway/tools/mounts/server-reads.ts'
import { createToolRegistry, type ToolRegistry } from '../../gateway/tools/registry/create-tool-registry.ts'
import { AgentTools } from '../../gateway/tools/rules/agent-tools.ts'
import { ToolSearch } from '../../gateway/tools/search/tool-search.ts'
import { createUpstreams, type Upstreams } from '../../gateway/tools/upstream/upstream.ts'
import { version } from '../../version.ts'
import type { AppParts } from '../parts.ts'
import { runsOfCalls } from './usage.ts'

interface ToolServices extends ToolRegistry {
  readonly toolCalls: ToolCalls
  readonly serverReads: ServerReads
  readonly agentTools: AgentTools
}

/** Constructs the registry of MCP servers and the calls of their tools, with the client that dials them. */
export function toolServices(parts: AppParts): ToolServices {
  const { outbound, clock, config, db } = parts
  const upstreams = createUpstreams({ outbound, clock, version })
  const registry = createToolRegistry({ ...parts, upstreams })
  const circuits = new ServerCircuits({ clock, failuresToOpen: config.CIRCUIT_FAILURES, openMs: config.CIRCUIT_OPEN_MS })
  const toolCalls = toolCallsOf(parts, upstreams, circuits, registry)
  const serverReads = new ServerReads({
    ...parts,
    calls: toolCalls,
    catalog: registry.toolCatalog,
    upstreams,
    circuits,
    timeoutMs: config.TOOL_TIMEOUT_MS,
    maxResultBytes: config.TOOL_RESULT_MAX_BYTES,
    credentials: registry.toolCredentials,
    recheck: principal => parts.agents.tokens.recheck(principal),
    isStale: () => parts.agents.killSwitch.isStale(),
  })
  const agentTools = new AgentTools({ catalog: registry.toolCatalog, rulesOf: (orgId, agentId) => toolRulesOf(db, orgId, agentId) })
  return { ...registry, toolCalls, serverReads, agentTools }
}

function toolCallsOf(parts: AppParts, upstreams: Upstreams, circuits: ServerCircuits, { toolCatalog, toolCredentials }: ToolRegistry): ToolCalls {
  const { clock, ids, config, limits, inflight, agents, controlLog, endedRuns, runLoops } = parts
  cutToolCalls(controlLog, inflight)
  return new ToolCalls({
    clock,
    ids,
    catalog: toolCatalog,
    credentials: toolCredentials,
    upstreams,
    circuits,
    search: new ToolSearch(parts.heavyTurns),
    questions: new ToolQuestions(parts.sealer, clock, () => ids.uuidv7(clock.nowMs())),
    limits,
    inflight,
    endedRuns,
    cappedRuns: runsOfCalls(parts),
    runLoops,
    isOn: config.TOOL_GATEWAY,
    maxResultBytes: config.TOOL_RESULT_MAX_BYTES,
    agentByLabel: (orgId, label) => agents.byLabel(orgId, label),
    recheck: principal => agents.tokens.recheck(principal),
    isStale: () => agents.killSwitch.isStale(),
  })
}
