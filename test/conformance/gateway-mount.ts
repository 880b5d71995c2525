/** The conformance server of the suite behind a whole gateway, at the mount of one server with the names that the server knows. */
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { register } from '../gateway/tools/registered.ts'
import { startApp } from '../harness/app.ts'
import { startMount } from '../mcp/mount.ts'
import { fixtureSurfaces } from './fixture-surface.ts'

export interface GatewayMount {
  readonly url: string
  close(): Promise<void>
}

/** Registers the conformance server, approves its tools, and lets an agent call them. The suite sends no credential, so requests get the token of the agent on their way. */
export async function startGatewayMount(): Promise<GatewayMount> {
  const upstream = await startMount(fixtureSurfaces(), { bearer: 'br-full' })
  const app = await startApp({ env: { OUTBOUND_ALLOW: new URL(upstream.url).host } })
  await register(app, 'suite', upstream.url)
  const agent = await app.newAgent('suite')
  await app.call('PATCH', `/v1/me/agents/${agent.id}`, { allowed_tools: ['suite__*'] })
  const { port } = new URL(app.baseUrl)
  const http = createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${agent.token}` }
    const onward = httpRequest({ host: '127.0.0.1', port, method: request.method, path: '/mcp/servers/suite?names=own', headers }, reply => {
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(response)
    })
    onward.on('error', () => response.destroy())
    response.on('close', () => onward.destroy())
    request.pipe(onward)
  })
  await new Promise<void>(resolve => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      http.closeAllConnections()
      await new Promise(resolve => http.close(resolve))
      await app.stop()
      await upstream.close()
    },
  }
}
