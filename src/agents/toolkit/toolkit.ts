/** What `brigade-gateway/agents` offers. It needs nothing but Node or a browser with fetch, and no package of the gateway. */
// biome-ignore-all lint/performance/noBarrelFile: the entry of a published subpath has to name what it offers.
export { agentFetch } from './agent-fetch.ts'
export { AgentRevokedError, BrigadeError } from './brigade-error.ts'
export { type GatewayClient, type GatewayOptions, type GatewayRequest, gatewayClient } from './gateway-client.ts'
export type { Credential, TokenSource } from './token-source.ts'
