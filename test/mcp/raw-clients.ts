/** The SDK clients of both eras, for features that differ between the eras or that mcp-clients.ts does not wrap. */
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { info } from './mcp-clients.ts'

/** The methods of both clients that have the same name and shape. */
export interface AnyClient {
  getServerCapabilities(): object | undefined
  listResources(params?: { cursor: string }): Promise<{ resources: { uri: string; name: string }[]; nextCursor?: string }>
  listResourceTemplates(): Promise<{ resourceTemplates: { uriTemplate: string }[] }>
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  readResource(params: { uri: string }): Promise<{ contents: any[] }>
  listPrompts(): Promise<{ prompts: { name: string }[] }>
  // biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
  getPrompt(params: { name: string; arguments?: Record<string, string> }): Promise<{ messages: any[] }>
  complete(params: {
    ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string }
    argument: { name: string; value: string }
  }): Promise<{ completion: { values: string[]; hasMore?: boolean; total?: number } }>
  close(): Promise<void>
}

const open: { close(): Promise<void> }[] = []

export async function connectV1(baseUrl: string, token: string): Promise<ClientV1> {
  const client = new ClientV1(info)
  await client.connect(new TransportV1(new URL(`${baseUrl}/mcp`), { requestInit: { headers: { authorization: `Bearer ${token}` } } }) as never)
  open.push(client)
  return client
}

export async function connectV2(baseUrl: string, token: string, fetchLike?: typeof fetch): Promise<ClientV2> {
  const client = new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new TransportV2(new URL(`${baseUrl}/mcp`), { requestInit, ...(fetchLike ? { fetch: fetchLike } : {}) }))
  open.push(client)
  return client
}

/** Both eras, for describe.each. */
export const rawEras = [
  ['initialize era', connectV1 as unknown as (baseUrl: string, token: string) => Promise<AnyClient>],
  ['discover era', connectV2 as unknown as (baseUrl: string, token: string) => Promise<AnyClient>],
] as const

export async function closeClients(): Promise<void> {
  for (const client of open.splice(0)) await client.close()
}

/** Sends a POST of the discover era without an SDK, for requests that the SDK's client never sends or hides. */
export function discoverPost(baseUrl: string, token: string, method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  const name = typeof params['uri'] === 'string' ? params['uri'] : params['name']
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': info,
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  return fetch(`${baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params: { ...params, _meta } }),
    ...(signal ? { signal } : {}),
  })
}

/** Returns the JSON-RPC message of the reply to such a POST, when the reply is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: test assertions read arbitrary JSON.
export async function discoverJson(baseUrl: string, token: string, method: string, params: Record<string, unknown>): Promise<any> {
  return (await discoverPost(baseUrl, token, method, params)).json()
}
