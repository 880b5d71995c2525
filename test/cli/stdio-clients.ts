/** The official MCP clients for both protocol versions. They talk to `brigade mcp` over stdin and stdout. */

import { fileURLToPath } from 'node:url'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'

export const brigade = fileURLToPath(new URL('../../dist/cli/brigade.js', import.meta.url))

// biome-ignore lint/suspicious/noExplicitAny: the two SDKs type the same result differently.
type Reply = any

export interface StdioClient {
  call(
    name: string,
    args?: Record<string, unknown>,
    options?: { signal?: AbortSignal; onprogress?: (progress: { progress: number; message?: string | undefined }) => void },
  ): Promise<Reply>
  names(): Promise<string[]>
  close(): Promise<void>
  /** The process id of the bridge. */
  readonly pid: number | null
  /** Returns what the bridge has written to stderr. */
  stderr(): string
}

/** How the process is started: `args` come after `brigade mcp`, and `env` is its whole environment. */
export interface BridgeProcess {
  readonly args?: readonly string[]
  readonly env: Record<string, string>
}

const info = { name: 'stdio-test', version: '1' }
const parameters = ({ args = [], env }: BridgeProcess) => ({
  command: process.execPath,
  args: [brigade, 'mcp', ...args],
  env: { PATH: process.env['PATH'] ?? '', ...env },
  stderr: 'pipe' as const,
})

function collected(stream: { on(event: 'data', fn: (chunk: unknown) => void): unknown } | null): () => string {
  let text = ''
  stream?.on('data', chunk => {
    text += String(chunk)
  })
  return () => text
}

/** A client of `@modelcontextprotocol/sdk`, which begins with `initialize`. */
export async function initializeClient(bridge: BridgeProcess): Promise<StdioClient> {
  const client = new ClientV1(info)
  const transport = new StdioV1(parameters(bridge))
  const stderr = collected(transport.stderr)
  await client.connect(transport)
  return {
    call: (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options),
    names: async () => (await client.listTools()).tools.map(tool => tool.name),
    close: () => client.close(),
    get pid() {
      return transport.pid
    },
    stderr,
  }
}

/** A client of `@modelcontextprotocol/client`, which begins with `server/discover`. */
export async function discoverClient(bridge: BridgeProcess): Promise<StdioClient & { readonly client: ClientV2 }> {
  const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const transport = new StdioV2(parameters(bridge))
  const stderr = collected(transport.stderr)
  await client.connect(transport)
  return {
    client,
    call: (name, args = {}, options) => client.callTool({ name, arguments: args }, options),
    names: async () => (await client.listTools()).tools.map(tool => tool.name),
    close: () => client.close(),
    get pid() {
      return transport.pid
    },
    stderr,
  }
}

/** Both clients, for describe.each. */
export const eras = [
  ['initialize era', initializeClient],
  ['discover era', discoverClient],
] as const
