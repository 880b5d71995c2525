import type { RowInvoker } from '../../../gateway/http/rows/row-invoker.ts'
import { cutError } from '../../../gateway/http/translate.ts'
import type { Clock } from '../../../platform/clock.ts'
import { fail, type GatewayError, toGatewayError } from '../../../platform/errors.ts'
import { abortSignalOf } from '../../../platform/loop/cancellation.ts'
import { CallCutError } from '../../../platform/loop/inflight.ts'
import type { Log } from '../../../platform/observe/log.ts'
import { traceFields } from '../../../platform/observe/tracing.ts'
import { type Questions, SurfaceError, type ToolAnswer, type ToolEntry, type ToolRun, type ToolSurface } from '../../surface.ts'
import { revokedEvidence } from '../chat/chat-stream.ts'
import { type ToolsCall, toolsCallName } from '../servers/tools-call.ts'
import type { ContentBlock, Tool, ToolCall, ToolResult, Toolset } from './tool.ts'
import { BrokenAnswer, RelayedRefusal, toolError } from './tool-errors.ts'
import { type ListedTool, listedTool } from './tool-schema.ts'
import type { ToolWatch } from './tool-watch.ts'
import type { ToolEntries, UpstreamTools } from './upstream-tools.ts'

/** A tool result in the form that versions 1 and 2 of the MCP SDK send. */
export interface ToolReply {
  [key: string]: unknown
  readonly content: ({ type: 'text'; text: string } | ContentBlock)[]
  readonly structuredContent: Record<string, unknown>
  readonly isError?: true
}

/** The name of all tools of servers in metrics and logs. Their own names would be an unbounded number of names. */
const upstreamLabel = 'tools_call'

/** All tools with their list entries. They are made once at start, because it takes milliseconds to turn schemas into JSON. */
export class ToolCatalog {
  readonly #entries: readonly { readonly tool: Tool; readonly listed: ListedTool }[]

  constructor(tools: readonly Tool[]) {
    // The tools are sorted by name. A constant order keeps the prompt caches of clients valid.
    this.#entries = [...tools].sort((a, b) => (a.name < b.name ? -1 : 1)).map(tool => ({ tool, listed: listedTool(tool) }))
  }

  /** Returns the tools of these sets that the caller may use, for tools/list. */
  listFor(principal: ToolCall['principal'], toolsets: ReadonlySet<Toolset>): ListedTool[] {
    return this.#entries.filter(({ tool }) => toolsets.has(tool.toolset) && tool.mayUse(principal)).map(({ listed }) => listed)
  }

  /** Returns the tool of that name, whatever its set. */
  find(name: string): Tool | undefined {
    return this.#entries.find(({ tool }) => tool.name === name)?.tool
  }
}

export interface ToolboxDeps {
  readonly catalog: ToolCatalog
  readonly invoker: RowInvoker
  readonly clock: Clock
  readonly log: Log
  /** When it is left out, nothing is counted or traced. */
  readonly watch?: ToolWatch | undefined
  /** The sets that the client chose. */
  readonly toolsets: ReadonlySet<Toolset>
  /** The tools of MCP servers that the client chose. When it is left out, it chose none. */
  readonly upstream?: UpstreamTools | undefined
  /** The tool that calls tools of servers by their names. When it is left out, the client did not choose its set. */
  readonly toolsCall?: ToolsCall | undefined
}

/** The tools of one caller for one POST. Both protocol eras answer tools/list and tools/call from it. */
export class Toolbox implements ToolSurface {
  readonly #deps: ToolboxDeps
  readonly #call: ToolCall
  #running = 0
  #pictureBytes = 0

  /** `call.signal` aborts when the gateway itself cuts the call, because of a revocation or a shutdown. */
  constructor(deps: ToolboxDeps, call: ToolCall) {
    this.#deps = deps
    this.#call = call
  }

  /** The number of tools that run now. */
  get running(): number {
    return this.#running
  }

  /** Bytes of pictures in the answers so far. */
  get pictureBytes(): number {
    return this.#pictureBytes
  }

  list(): ToolEntry[] {
    const { catalog, toolsCall, toolsets } = this.#deps
    const { principal } = this.#call
    return [...(toolsCall?.listFor(principal) ?? []), ...catalog.listFor(principal, toolsets)].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Returns one page: own tools on the first one, and the tools of servers behind them. Throws SurfaceError. */
  async page(cursor: string | undefined): Promise<ToolEntries> {
    const { upstream } = this.#deps
    if (upstream === undefined) return { tools: this.list() }
    const { tools, ...rest } = await upstream.page(cursor, this.#call)
    return { tools: cursor === undefined ? [...this.list(), ...tools] : tools, ...rest }
  }

  /** Returns whether the chosen sets have this tool. A tool that this caller may not use counts too. The answer to its call says why it is refused. */
  has(name: string): boolean {
    return this.#find(name) !== undefined || this.#isUpstream(name) || this.#isToolsCall(name)
  }

  /** Returns the message for a name that `has()` does not know. */
  unknown(name: string): string {
    const elsewhere = this.#deps.catalog.find(name)?.toolset
    const hint = elsewhere === undefined ? '' : `; it is in the toolset ${elsewhere}, which this connection did not choose: add it to ?toolsets= of the MCP URL`
    return `Unknown tool: ${name.slice(0, 128)}${hint}`
  }

  /** Runs a tool that `has()` knows. A failure is a result with `isError`, never an exception. */
  async run(name: string, args: unknown, run: ToolRun): Promise<ToolReply | ToolAnswer | Questions> {
    const { upstream, toolsCall } = this.#deps
    if (upstream?.covers(name)) return this.#runUpstream(run, call => upstream.run(name, args, call, run, this.unknown(name)))
    if (toolsCall !== undefined && this.#isToolsCall(name)) return this.#runUpstream(run, call => toolsCall.run(args, call, run))
    return this.#runOwn(name, args, run)
  }

  #isUpstream(name: string): boolean {
    return this.#deps.upstream?.covers(name) === true
  }

  #isToolsCall(name: string): boolean {
    return this.#deps.toolsCall !== undefined && name === toolsCallName
  }

  /** Throws SurfaceError where `work` does. Another failure is a result without structured content, which would have to match the tool's schema. */
  async #runUpstream({ signal }: ToolRun, work: (call: ToolCall) => Promise<ToolAnswer | Questions>): Promise<ToolAnswer | Questions> {
    const watched = this.#deps.watch?.begin(upstreamLabel, this.#call)
    this.#running++
    try {
      const call: ToolCall = { ...this.#call, ...watched?.below, signal: AbortSignal.any([signal, abortSignalOf(this.#call.signal)]) }
      call.signal.throwIfAborted()
      const answer = await work(call)
      watched?.end(true)
      return answer
    } catch (thrown) {
      watched?.end(false)
      if (thrown instanceof SurfaceError) throw thrown
      const { structuredContent: _structured, ...reply } = toReply(this.#failure(signal.aborted ? cancelled() : thrown, upstreamLabel), true)
      return reply
    } finally {
      this.#running--
    }
  }

  async #runOwn(name: string, args: unknown, { signal, report }: ToolRun): Promise<ToolReply> {
    const tool = this.#find(name)
    const watched = tool === undefined ? undefined : this.#deps.watch?.begin(tool.name, this.#call)
    this.#running++
    try {
      if (!tool) throw fail('not_found', { message: this.unknown(name) })
      const call: ToolCall = { ...this.#call, ...watched?.below, signal: AbortSignal.any([signal, abortSignalOf(this.#call.signal)]) }
      call.signal.throwIfAborted()
      const result = await tool.run(args, { call, invoker: this.#deps.invoker, clock: this.#deps.clock, report })
      watched?.end(true)
      for (const block of result.more ?? []) if (block.type === 'image') this.#pictureBytes += block.data.length
      return toReply(result, false)
    } catch (thrown) {
      watched?.end(false)
      return toReply(this.#failure(signal.aborted ? cancelled() : thrown, name), true)
    } finally {
      this.#running--
    }
  }

  #find(name: string): Tool | undefined {
    const tool = this.#deps.catalog.find(name)
    return tool && this.#deps.toolsets.has(tool.toolset) ? tool : undefined
  }

  #failure(thrown: unknown, tool: string): ToolResult {
    const { requestId, principal, trace } = this.#call
    const cut: unknown = this.#call.signal.reason
    if (thrown instanceof RelayedRefusal) return toolError(thrown, requestId)
    if (thrown instanceof BrokenAnswer) return toolError(thrown.error, requestId)
    const error = toGatewayError(cut instanceof CallCutError ? endOf(cut) : thrown)
    if (error.errorName === 'internal_error')
      this.#deps.log.error('tool failed', {
        requestId,
        ...traceFields(trace),
        orgId: principal.orgId,
        path: `mcp:${tool}`,
        code: error.code,
        error: error.cause,
      })
    return toolError(error, requestId)
  }
}

/** Returns the error that ends a running tool. A revoked agent gets the code that also ends streams, because further calls cannot help it. */
function endOf(cut: CallCutError): GatewayError {
  const error = cutError(cut)
  return cut.reason === 'agent_revoked' ? fail('agent_revoked_label', { message: error.message, ...revokedEvidence }) : error
}

/** Returns the error for a client that has disconnected. Nobody reads it. It keeps the abort out of the error log. */
function cancelled(): GatewayError {
  return fail('bad_request', { message: 'The client cancelled this call.' })
}

function toReply(result: ToolResult, isError: boolean): ToolReply {
  return {
    content: [{ type: 'text', text: result.text }, ...(result.more ?? [])],
    structuredContent: { ...result.structured },
    ...(result.meta === undefined ? {} : { _meta: { ...result.meta } }),
    ...(isError ? { isError: true } : {}),
  }
}
