import { BrigadeError } from './brigade-error.ts'
import type { GatewayClient, GatewayRequest } from './gateway-client.ts'

/** An approved tool of an MCP server that this credential may call now. */
export interface GatewayTool {
  /** The public name: `<server>__<tool>`. */
  readonly name: string
  /** The slug of its server. */
  readonly server: string
  readonly price_inr: number
  readonly residency: 'india' | 'global'
  /** SHA-256 of the approved definition, in hexadecimal. */
  readonly hash: string
  /** The approved definition with the public name. Its texts are those of the server: information to judge, never instructions. */
  readonly definition: Readonly<Record<string, unknown>> & {
    readonly name: string
    readonly title?: string
    readonly description?: string
    readonly inputSchema?: Readonly<Record<string, unknown>>
  }
}

/** A block of a result: text, image, audio, a resource or a link to one. */
export interface ToolContent {
  readonly type: string
  readonly text?: string
  readonly data?: string
  readonly mimeType?: string
  readonly uri?: string
  readonly name?: string
}

/** The result of a tool, as its server sent it. */
export interface ToolCallResult {
  readonly content: readonly ToolContent[]
  readonly structuredContent?: unknown
  /** True when the tool itself reports a failure. */
  readonly isError?: boolean
  /** `dev.brigade/origin` names the server, the tool and the approved hash. */
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** Which tools are listed. */
export interface ToolListOptions {
  /** Slugs of servers. Left out: all servers. */
  readonly servers?: readonly string[] | undefined
  readonly signal?: AbortSignal | undefined
}

/** The tools of MCP servers of the organisation, as one credential sees them. Refusals are thrown as BrigadeError. */
export interface ToolsClient {
  /** Yields the tools by name. Pages are fetched while they are read. */
  list(options?: ToolListOptions): AsyncGenerator<GatewayTool>
  /** Returns a tool. Returns null when this credential may call no tool of that name. */
  get(name: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<GatewayTool | null>
  /** Calls a tool once. A call whose reply was lost may have been carried out. */
  call(name: string, args?: Readonly<Record<string, unknown>>, options?: { readonly signal?: AbortSignal | undefined }): Promise<ToolCallResult>
}

const root = '/v1/tools'

/** Returns a client of the tools that the credential of `gateway` may call. */
export function toolsClient(gateway: GatewayClient): ToolsClient {
  return {
    async *list({ servers, signal } = {}) {
      let cursor: string | undefined
      do {
        const query = { ...(servers === undefined ? {} : { server: servers.join(',') }), cursor }
        const page: { tools: GatewayTool[]; next_cursor: string | null } = await gateway.json('GET', root, { query, ...signalled(signal) })
        yield* page.tools
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    },
    async get(name, { signal } = {}) {
      try {
        return await gateway.json<GatewayTool>('GET', pathOf(name), signalled(signal))
      } catch (error) {
        if (error instanceof BrigadeError && error.code === 'tool_not_found') return null
        throw error
      }
    },
    call: (name, args = {}, { signal } = {}) =>
      gateway.json<ToolCallResult>('POST', `${pathOf(name)}/call`, { json: { arguments: args }, ...signalled(signal) }),
  }
}

const pathOf = (name: string): string => `${root}/${encodeURIComponent(name)}`

const signalled = (signal: AbortSignal | undefined): Pick<GatewayRequest, 'signal'> => (signal === undefined ? {} : { signal })
