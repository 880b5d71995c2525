import type { RowInvoker } from '../../../gateway/http/rows/row-invoker.ts'
import { publicToolName } from '../../../gateway/tools/mounts/server-read-endpoints.ts'
import { GatewayError } from '../../../platform/errors.ts'
import { mayCall } from '../../../platform/security/principal.ts'
import type { McpRows } from '../../mcp-rows.ts'
import { type Questions, SurfaceError, type ToolAnswer, type ToolEntry, type ToolRun } from '../../surface.ts'
import { jsonOf, type ToolCall } from './tool.ts'
import type { ToolServers } from './toolset-choice.ts'

/** What a call of a tool needs of its run. */
export type AskedRun = Pick<ToolRun, 'report' | 'asked'>

/** One page of tools/list. */
export interface ToolEntries {
  readonly tools: ToolEntry[]
  readonly nextCursor?: string
}

type Rows = Pick<McpRows, 'listTools' | 'callTool'>

interface ListedRow {
  readonly server: string
  readonly own_name: string
  readonly hash: string
  readonly definition: Readonly<Record<string, unknown>> & { readonly name: string; readonly inputSchema?: unknown; readonly _meta?: unknown }
}

const objectOf = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? { ...value } : {})

/** The tools of MCP servers of the organisation, as one caller sees them. Lists and calls are those of the endpoint rows. */
export class UpstreamTools {
  readonly #rows: Rows
  readonly #invoker: RowInvoker
  readonly #servers: ToolServers
  readonly #ownNamesOf: string | null

  /** With `ownNamesOf`, the only server is this one, and its tools have the names that the server knows. */
  constructor(rows: Rows, invoker: RowInvoker, servers: ToolServers, ownNamesOf: string | null = null) {
    this.#rows = rows
    this.#invoker = invoker
    this.#servers = servers
    this.#ownNamesOf = ownNamesOf
  }

  /** Returns whether a name can be one of a chosen server. Own tools have no `__` in their names. The call says whether there is such a tool. */
  covers(name: string): boolean {
    if (this.#ownNamesOf !== null) return true
    const end = name.indexOf('__')
    return end > 0 && (this.#servers === 'all' || this.#servers.has(name.slice(0, end)))
  }

  /** Returns one page of what the caller may call now. A caller without the scope sees none. Throws SurfaceError for an invalid cursor. */
  async page(cursor: string | undefined, call: ToolCall): Promise<ToolEntries> {
    if (!mayCall(call.principal, this.#rows.listTools.access).ok) return { tools: [] }
    const server = this.#servers === 'all' ? {} : { server: [...this.#servers].join(',') }
    try {
      const value = await this.#invoker.call(this.#rows.listTools, { query: { ...server, ...(cursor === undefined ? {} : { cursor }) } }, call)
      const { tools, next_cursor: next } = value as { readonly tools: readonly ListedRow[]; readonly next_cursor: string | null }
      return { tools: tools.map(this.#ownNamesOf === null ? entryOf : ownEntryOf), ...(next === null ? {} : { nextCursor: next }) }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // The gateway is switched off, so there are no such tools.
      if (error.errorName === 'unavailable') return { tools: [] }
      throw listRefusal(error)
    }
  }

  /** Calls a tool. Throws SurfaceError with `unknown` for a name that the caller may not call, as for a name that does not exist. */
  async run(name: string, args: unknown, call: ToolCall, run: AskedRun, unknown: string): Promise<ToolAnswer | Questions> {
    try {
      return await this.call(name, args, call, run)
    } catch (error) {
      if (error instanceof GatewayError && error.errorName === 'tool_not_found') throw unknownTool(unknown)
      throw error
    }
  }

  /** Calls a tool by its row. Returns the questions of its server when the client can be asked. Throws GatewayError. */
  async call(name: string, args: unknown, call: ToolCall, { report, asked }: AskedRun): Promise<ToolAnswer | Questions> {
    const onProgress =
      report === null
        ? {}
        : { onProgress: ({ progress, total, message = '' }: Noted) => report({ progress, message, ...(total === undefined ? {} : { total }) }) }
    const asking = asked?.can('elicitation') ? { asked: { modes: asked.modes, answers: asked.answers, state: asked.state } } : {}
    const publicName = this.#ownNamesOf === null ? name : publicToolName(this.#ownNamesOf, name)
    const input = { path: { name: publicName }, body: { arguments: objectOf(args) } }
    const value = await this.#invoker.call(this.#rows.callTool, input, { ...call, ...onProgress, ...asking }).catch(refuseState)
    // The structured content of a server may be any JSON value. The era of the client decides what becomes of it.
    return { ...(jsonOf(value) as ToolAnswer | Questions) }
  }
}

function listRefusal({ errorName, message, code }: GatewayError): SurfaceError {
  return new SurfaceError(errorName === 'bad_request' ? 'badParams' : 'refused', message, { code })
}

/** A state that the gateway did not give is an error of the protocol, as SEP-2322 asks for. Every other failure stays what it is. */
function refuseState(error: unknown): never {
  if (error instanceof GatewayError && error.options.extra?.['reason'] === 'request_state')
    throw new SurfaceError('badParams', error.message, { code: error.code })
  throw error
}

const unknownTool = (message: string): SurfaceError => new SurfaceError('badParams', message)

interface Noted {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** A row of a tool stays the same object while the tool does not change, so its entry is made once. */
const entries = new WeakMap<ListedRow, ToolEntry>()

/** Returns a definition in the form of tools/list, with the approved hash. Tasks are not supported, so what the server says about them is left out. */
function entryOf(row: ListedRow): ToolEntry {
  const known = entries.get(row)
  if (known !== undefined) return known
  const { server, hash, definition } = row
  const { execution: _execution, ...shown } = definition
  const entry = {
    ...shown,
    inputSchema: { ...objectOf(definition.inputSchema), type: 'object' as const },
    _meta: { ...objectOf(definition._meta), 'dev.brigade/origin': { server, hash, untrusted: true } },
  }
  entries.set(row, entry)
  return entry
}

const ownEntryOf = (row: ListedRow): ToolEntry => ({ ...entryOf(row), name: row.own_name })
