import type { Clock } from '../../../platform/clock.ts'
import type { CancelSignal } from '../../../platform/loop/cancellation.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import { readServer, type ServerRead } from '../mounts/read-request.ts'
import type { ListedTool } from '../registry/callable-tool.ts'
import { listedTools } from './definition-pages.ts'
import { type Era, EraMemory } from './era-memory.ts'
import { runExchange } from './run-exchange.ts'
import { masked, maskedText, secretsOf } from './secret-mask.ts'
import { type CallToolResult, calledTool, type Progress, type SentAnswers, type ServerQuestions } from './tool-call.ts'
import { UpstreamError } from './upstream-error.ts'
import type { UpstreamTarget } from './upstream-target.ts'

export type { UpstreamTarget } from './upstream-target.ts'

export interface CallOptions {
  readonly signal: CancelSignal
  /** Gets each progress note of the server. Absent when nobody wants them; the server is then not asked for any. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** What the client of the call can be asked, and its answers. When it is left out, a server that asks fails. */
  readonly asked?: SentAnswers | null
  /** The most bytes of the result, as JSON. */
  readonly maxResultBytes: number
  /** The schema of the arguments. Members with `x-mcp-header` go into headers too, as a server of 2026-07-28 requires. */
  readonly inputSchema?: unknown
}

/** The client of MCP servers that organisations registered. */
export interface Upstreams {
  /**
   * Returns all definitions of a server, as it sent them and with unknown members. At most 64 pages and 8 MiB. Throws UpstreamError.
   */
  listTools(target: UpstreamTarget, signal: CancelSignal): Promise<{ era: Era; tools: ListedTool[] }>
  /** Calls a tool once. Nothing is sent a second time. Throws UpstreamError, whose `isSent` says whether bytes of the call may have left. */
  callTool(
    target: UpstreamTarget,
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: CallOptions & { readonly asked?: null },
  ): Promise<CallToolResult>
  callTool(target: UpstreamTarget, name: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<CallToolResult | ServerQuestions>
  /** Reads resources or prompts. Nothing is kept. Throws UpstreamError. */
  read(target: UpstreamTarget, read: ServerRead, signal: CancelSignal): Promise<Record<string, unknown>>
}

export interface UpstreamsDeps {
  readonly outbound: Pick<Outbound, 'toUserUrl'>
  readonly clock: Clock
  /** The version of this program, which servers see. */
  readonly version: string
}

/** Maximum bytes of all pages of definitions together. */
const listMaxBytes = 8 * 1024 * 1024
/** Bytes of a call beside its result: the envelope, progress notes, the negotiation. */
const besideResultBytes = 256 * 1024
const rpcMessageMaxChars = 500

/** Makes the client. It keeps no connection and no session between two exchanges. Decision 0787 gives the reasons. */
export function createUpstreams(deps: UpstreamsDeps): Upstreams {
  const eras = new EraMemory(deps.clock)
  return {
    async listTools(target, signal) {
      const secrets = secretsOf(target.header)
      const exchange = { ...deps, eras, target, signal, maxBytes: listMaxBytes }
      const { era, value } = await hidden(secrets, () => runExchange(exchange, listedTools))
      return { era, tools: masked(value, secrets) }
    },
    callTool: (async (
      target: UpstreamTarget,
      name: string,
      args: Readonly<Record<string, unknown>>,
      { signal, onProgress, maxResultBytes, inputSchema, asked = null }: CallOptions,
    ) => {
      const secrets = secretsOf(target.header)
      const exchange = { ...deps, eras, target, signal, maxBytes: maxResultBytes + besideResultBytes }
      const call = { name, args, inputSchema, onProgress: onProgress && ((progress: Progress) => onProgress(masked(progress, secrets))), asked, maxResultBytes }
      const { value } = await hidden(secrets, () => runExchange(exchange, (client, options, received) => calledTool(client, call, options, received)))
      return masked(value, secrets)
      // Without `asked`, a server cannot ask.
    }) as Upstreams['callTool'],
    async read(target, read, signal) {
      const secrets = secretsOf(target.header)
      const exchange = { ...deps, eras, target, signal, maxBytes: read.maxResultBytes + besideResultBytes }
      const { value } = await hidden(secrets, () => runExchange(exchange, (client, options, received) => readServer(client, read, options, received)))
      return masked(value, secrets)
    },
  }
}

/** Bounds the text of a server in an error, and masks the server's secret in it. */
async function hidden<T>(secrets: readonly string[], work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.facts.rpcMessage === undefined) throw error
    const shown = maskedText(error.facts.rpcMessage, secrets).slice(0, rpcMessageMaxChars)
    const known = new UpstreamError(error.kind, error.message, { ...error.facts, rpcMessage: shown.toWellFormed() })
    known.isSent = error.isSent
    throw known
  }
}
