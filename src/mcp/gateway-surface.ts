import type { RowInvoker } from '../gateway/http/rows/row-invoker.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/observe/log.ts'
import type { Shares } from '../platform/shares.ts'
import { mcpRows as rows } from './mcp-rows.ts'
import { hasOwnNames, mountedSlugOf, mountedSurface } from './mount/mounted-surface.ts'
import { AccountPolls } from './news/account-polls.ts'
import type { MemoryWatch } from './news/memory-news.ts'
import { GatewayChanges } from './news/subscriptions.ts'
import { GatewayPrompts } from './prompts/prompts.ts'
import { complete } from './resources/completions.ts'
import { GatewayResources } from './resources/resources.ts'
import { RowReader } from './row-reader.ts'
import type { SurfaceOf } from './surface.ts'
import { ToolsCall } from './tools/servers/tools-call.ts'
import { searchToolset, type Tool } from './tools/toolbox/tool.ts'
import type { ToolWatch } from './tools/toolbox/tool-watch.ts'
import { Toolbox, ToolCatalog } from './tools/toolbox/toolbox.ts'
import { toolServersOf, toolsetsOf } from './tools/toolbox/toolset-choice.ts'
import { UpstreamTools } from './tools/toolbox/upstream-tools.ts'

/** The parts of the gateway's own surface. */
export interface GatewaySurfaceDeps {
  readonly tools: readonly Tool[]
  /** Calls the endpoint rows for tools, resources, prompts and change notifications. */
  readonly invoker: RowInvoker
  readonly clock: Clock
  readonly log: Log
  /** When it is left out, nothing is counted or traced. */
  readonly watch?: ToolWatch | undefined
  /** The parts of the surface other than tools. When they are left out, the surface has only tools. */
  readonly beyondTools?: {
    /** Bounds the number of polls of account resources. Founders (people who created organisations) share these places. */
    readonly polls: Shares<string>
    /** Returns the founder of an organisation. */
    readonly founderOf: (orgId: number) => string
    readonly memory: MemoryWatch
    /** Maximum size of one memory object over MCP in bytes (setting MEMORY_MCP_MAX_BYTES). */
    readonly objectMaxBytes: number
  }
}

/** Returns a function that makes the surface for each caller. The surface contains what the endpoint rows allow the caller to do. */
export function gatewaySurface({ tools, invoker, clock, log, watch, beyondTools }: GatewaySurfaceDeps): SurfaceOf {
  const catalog = new ToolCatalog(tools)
  const uncounted = invoker.uncounted()
  const polls = beyondTools === undefined ? null : new AccountPolls(clock, beyondTools.polls, beyondTools.founderOf)
  return (call, url) => {
    const mounted = mountedSlugOf(url)
    if (mounted !== null) return mountedSurface({ slug: mounted, isOwnNames: hasOwnNames(url) }, rows, { catalog, invoker, clock, log, watch }, call)
    const servers = toolServersOf(url)
    const toolsets = toolsetsOf(url)
    const upstream = servers === null ? undefined : new UpstreamTools(rows, invoker, servers)
    const toolsCall = toolsets.has(searchToolset) ? new ToolsCall(rows, new UpstreamTools(rows, invoker, 'all')) : undefined
    const toolbox = new Toolbox({ catalog, invoker, clock, log, watch, toolsets, upstream, toolsCall }, call)
    if (beyondTools === undefined || polls === null) return { tools: toolbox }
    const { memory, objectMaxBytes } = beyondTools
    const reader = new RowReader(invoker, call, log)
    const prompts = new GatewayPrompts({ rows, reader, clock })
    return {
      tools: toolbox,
      resources: new GatewayResources({ rows, reader, memory, objectMaxBytes }),
      prompts,
      complete: (question, signal) => complete(question, { rows, reader, memory, promptNames: prompts.list().map(({ name }) => name) }, signal),
      changes: new GatewayChanges({ rows, rated: reader, reader: new RowReader(uncounted, call, log), memory, polls, log }),
    }
  }
}
