/** The SDK clients of both protocol eras, connected to a gateway, with their answers in one form. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { TestApp } from '../harness/app.ts'

export const info = { name: 'test', version: '1' }

/** The methods that both SDK clients share, with the results as data. */
export interface ToolClient {
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal, onprogress?: (step: Step) => void): Promise<ToolReply>
  names(): Promise<string[]>
}
/** A progress notification. */
export interface Step {
  readonly progress: number
  readonly message?: string
}
export interface ToolReply {
  readonly isError?: boolean
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readonly data: any
  /** The blocks after the text. */
  readonly more: { readonly type: string; readonly [field: string]: unknown }[]
  readonly meta: Record<string, unknown>
}

// biome-ignore lint/suspicious/noExplicitAny: the two SDKs type the same result differently.
const replyOf = (result: any): ToolReply => ({
  ...(result.isError ? { isError: true } : {}),
  text: result.content[0]?.text ?? '',
  data: result.structuredContent,
  more: result.content.slice(1),
  meta: result._meta ?? {},
})

/** The SDKs represent a missing message as undefined. */
type SdkStep = { progress: number; message?: string | undefined }
export const stepsTo =
  (onprogress: (step: Step) => void) =>
  ({ progress, message }: SdkStep): void =>
    onprogress({ progress, ...(message === undefined ? {} : { message }) })

const optionsOf = (signal?: AbortSignal, onprogress?: (step: Step) => void) => ({
  ...(signal ? { signal } : {}),
  ...(onprogress ? { onprogress: stepsTo(onprogress) } : {}),
})

/** Clients of `app()`, which may start later. Call `closeAll` in afterEach. `path` may contain a query. */
export function mcpClients(app: () => TestApp, path = '/mcp') {
  const open: { close(): Promise<void> }[] = []

  async function initializeClient(token = app().key, headers: Record<string, string> = {}): Promise<ToolClient> {
    const client = new ClientV1(info)
    await client.connect(
      new TransportV1(new URL(`${app().baseUrl}${path}`), { requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } } }) as never,
    )
    open.push(client)
    // The list gives the client the output schemas. The client then validates every result with them.
    const names = async () => (await client.listTools()).tools.map(tool => tool.name)
    await names()
    return {
      names,
      call: async (name, args = {}, signal, onprogress) => replyOf(await client.callTool({ name, arguments: args }, undefined, optionsOf(signal, onprogress))),
    }
  }

  async function discoverClient(
    token = app().key,
    headers: Record<string, string> = {},
    mode: 'auto' | { pin: string } = { pin: '2026-07-28' },
  ): Promise<ToolClient & { era: unknown }> {
    const client = new ClientV2(info, { versionNegotiation: { mode } })
    await client.connect(new TransportV2(new URL(`${app().baseUrl}${path}`), { requestInit: { headers: { authorization: `Bearer ${token}`, ...headers } } }))
    open.push(client)
    const names = async () => (await client.listTools()).tools.map(tool => tool.name)
    await names()
    return {
      era: client.getProtocolEra(),
      names,
      call: async (name, args = {}, signal, onprogress) => replyOf(await client.callTool({ name, arguments: args }, optionsOf(signal, onprogress))),
    }
  }

  return {
    initializeClient,
    discoverClient,
    /** Both eras, for describe.each. */
    eras: [
      ['initialize era', initializeClient],
      ['discover era', discoverClient],
    ] as const,
    async closeAll(): Promise<void> {
      for (const client of open.splice(0)) await client.close()
    },
  }
}
