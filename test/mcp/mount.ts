/** A real HTTP server that serves only /mcp, for tests of the transport. Small test rows are behind its tools. */

import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Cors } from '../../src/gateway/http/cors.ts'
import type { EdgeDeps } from '../../src/gateway/http/edge.ts'
import { OpenStreams } from '../../src/gateway/http/replies/open-streams.ts'
import { RateHeaders } from '../../src/gateway/http/replies/rate-headers.ts'
import { RowInvoker } from '../../src/gateway/http/rows/row-invoker.ts'
import { gatewaySurface } from '../../src/mcp/gateway-surface.ts'
import type { SurfaceOf } from '../../src/mcp/surface.ts'
import type { Tool } from '../../src/mcp/tools/toolbox/tool.ts'
import { createMcp } from '../../src/mcp/transport/transport.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { fail } from '../../src/platform/errors.ts'
import { Inflight } from '../../src/platform/loop/inflight.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { type AgentPrincipal, agentScopes, type BearerPrincipal, type KeyPrincipal } from '../../src/platform/security/principal.ts'
import { systemIds } from '../../src/platform/values/ids.ts'
import { roomyBounds } from '../harness/bounds.ts'

export const fullKey: KeyPrincipal = {
  kind: 'key',
  orgId: 1,
  userId: 7,
  role: 'owner',
  keyId: 11,
  keyName: 'laptop',
  scope: 'full',
  workspaceId: null,
  limits: { rpmLimit: null, dailyLimit: null },
  policies: [],
  capabilities: [],
}
export const inferenceKey: KeyPrincipal = { ...fullKey, keyId: 12, keyName: 'app', scope: 'inference', userId: null, role: null }
export const agent: AgentPrincipal = {
  kind: 'agent',
  orgId: 1,
  userId: 7,
  role: 'owner',
  agentId: 21,
  agentName: 'triage',
  ancestorIds: [],
  epoch: 1,
  tokenIds: [],
  keyId: 11,
  keyName: 'laptop',
  scopes: agentScopes,
  workspaceId: null,
  limits: { rpmLimit: null, dailyLimit: null },
  policies: [],
  capabilities: [],
  expiresAtMs: 4_000_000_000_000,
  lifeSeconds: 900,
}

/** A `max_wait_s` that `soonClock` shortens to 150 ms. */
export const soonSeconds = 7
export const soonClock: Clock = { ...systemClock, after: (ms, fn) => systemClock.after(ms === soonSeconds * 1000 ? 150 : ms, fn) }

export interface Mount {
  readonly url: string
  readonly inflight: Inflight
  /** Credentials that are no longer valid. */
  readonly revoked: Set<string>
  drain(): void
  close(): Promise<void>
}

const principals: Readonly<Record<string, BearerPrincipal>> = { 'br-full': fullKey, 'br-inference': inferenceKey, 'aaa.bbb.ccc': agent }

export interface MountOptions {
  readonly clock?: Clock
  readonly allowedHosts?: readonly string[]
  /** The credential of requests without one, for clients that cannot send any. */
  readonly bearer?: string
}

/** Starts the mount on a free loopback port, with the test's tools or with a whole surface. */
export async function startMount(tools: readonly Tool[] | SurfaceOf, options: MountOptions = {}): Promise<Mount> {
  const inflight = new Inflight()
  const revoked = new Set<string>()
  let draining = false
  let baseUrl = ''
  const authenticate = (headers: IncomingHttpHeaders): BearerPrincipal => {
    const token = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? ''
    const principal = principals[token]
    if (!principal || revoked.has(token)) throw fail('invalid_api_key', revoked.has(token) ? { extra: { reason: 'agent_revoked' } } : {})
    return principal
  }
  const bounds = roomyBounds(64e6)
  const edge: EdgeDeps = {
    services: {},
    ids: systemIds,
    log: silentLog,
    inflight,
    baseUrl: () => baseUrl,
    ...bounds,
    bodyLimitBytes: 1 << 20,
    inferenceBodyLimitBytes: 1 << 20,
    formLimits: { fileBytes: 1e6, totalBytes: 1e6 },
    authenticate,
    authenticateSession: () => Promise.reject(fail('no_session')),
    recheck: () => undefined,
    takeRate: () => undefined,
    noteRefused: () => {},
    rates: new RateHeaders({ requestsLeft: () => null, withFields: true }),
    countAnonymous: () => undefined,
    countPerson: () => undefined,
    acts: { begin: () => Promise.resolve(1n), end: () => Promise.resolve(), record: () => Promise.resolve() },
    streams: new OpenStreams(systemClock, 1000),
    cors: new Cors([], []),
    isDraining: () => draining,
    isRetiring: () => false,
    clientIp: () => '127.0.0.1',
  }
  const mcp = createMcp({
    surfaceOf:
      typeof tools === 'function' ? tools : gatewaySurface({ tools, invoker: new RowInvoker(edge, []), clock: options.clock ?? systemClock, log: silentLog }),
    ids: systemIds,
    clock: options.clock ?? systemClock,
    log: silentLog,
    inflight,
    ...bounds,
    changeStreamsMax: 1000,
    baseUrl: () => baseUrl,
    allowedHosts: options.allowedHosts ?? [],
    serviceId: 'brigade',
    version: '1.2.3',
    authenticate,
    recheck: () => undefined,
    isDraining: () => draining,
    clientIp: () => '127.0.0.1',
    countAnonymous: () => undefined,
    takeRate: () => undefined,
    holdStream: () => Promise.resolve(() => undefined),
  })
  const server: Server = createServer((request, response) => {
    if (options.bearer !== undefined) request.headers.authorization ??= `Bearer ${options.bearer}`
    void mcp.handle(request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `${baseUrl}/mcp`,
    inflight,
    revoked,
    drain: () => {
      draining = true
    },
    close: async () => {
      await mcp.close()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
