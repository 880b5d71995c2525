/** A real MCP server that takes tokens of a strict issuer only: it names its issuer (RFC 9728) and answers 401 to everything else. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StrictIssuer } from '../../../harness/strict-issuer.ts'
import { type McpFixture, startMcpFixture } from '../mcp-server.ts'

export interface GuardedServer {
  readonly url: string
  readonly hostPort: string
  readonly mcp: McpFixture
  /** The `authorization` of every request to the MCP endpoint, and who it was for. */
  readonly seen: { readonly authorization: string | undefined; readonly holder: string | null }[]
  /** Changes the metadata of the resource. Null: there are none. */
  resourceMetadata: (document: Record<string, unknown>) => Record<string, unknown> | null
  /** The challenge of a 401. */
  challenge: string | null
  close(): Promise<void>
}

/** Starts the server in front of an MCP server of one era. Its resource is known to the issuer. */
export async function startGuardedServer(issuer: StrictIssuer, era: 'modern' | 'legacy' = 'modern'): Promise<GuardedServer> {
  const mcp = await startMcpFixture(era)
  const http = createServer((request, response) => answer(request, response))
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  const hostPort = `127.0.0.1:${(http.address() as AddressInfo).port}`
  const url = `http://${hostPort}/mcp`
  const wellKnown = `/.well-known/oauth-protected-resource/mcp`
  const server: GuardedServer = {
    url,
    hostPort,
    mcp,
    seen: [],
    resourceMetadata: document => document,
    challenge: `Bearer error="invalid_token", resource_metadata="http://${hostPort}${wellKnown}"`,
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await mcp.close()
    },
  }
  issuer.resources.add(url)

  function answer(request: IncomingMessage, response: ServerResponse): unknown {
    if (request.url === wellKnown) {
      const document = server.resourceMetadata({ resource: url, authorization_servers: [issuer.url], scopes_supported: ['tools'] })
      if (document === null) return response.writeHead(404).end()
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document))
    }
    if (request.url !== '/mcp') return response.writeHead(404).end()
    const { authorization } = request.headers
    const holder = issuer.holderOf(/^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '', url)
    server.seen.push({ authorization, holder })
    if (holder === null) {
      request.resume()
      return response.writeHead(401, server.challenge === null ? {} : { 'www-authenticate': server.challenge }).end()
    }
    const onward = httpRequest(mcp.url, { method: request.method ?? 'GET', headers: { ...request.headers, host: mcp.hostPort } }, reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    return request.pipe(onward)
  }
  return server
}
