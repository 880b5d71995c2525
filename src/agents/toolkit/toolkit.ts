/** The exports of `brigade-gateway/agents`. They need only Node, or a browser with fetch, and no package of the gateway. */
// biome-ignore-all lint/performance/noBarrelFile: the entry of a published subpath has to name what it offers.

export { type AiSdkMemoryTool, aiSdkMemoryTools } from './adapters/ai-sdk-memory.ts'
export { type BrigadeStore, brigadeStore, type StoreItem } from './adapters/langgraph-store.ts'
export { type AgentFetchOptions, agentFetch } from './agent-fetch.ts'
export { AgentRevokedError, BrigadeError } from './brigade-error.ts'
export { type AgentBudget, type AgentIdentity, type ConnectedAgent, type ConnectOptions, connectAgent } from './connect-agent.ts'
export { type GatewayClient, type GatewayOptions, type GatewayRequest, gatewayClient } from './gateway-client.ts'
export { type MemoryClient, type MemoryShares, memoryClient } from './memory-client/memory-client.ts'
export type { MemoryChange } from './memory-client/memory-client-edit.ts'
export type {
  MemoryAuthor,
  MemoryConditions,
  MemoryHistoryPage,
  MemoryListed,
  MemoryListOptions,
  MemoryListPage,
  MemoryMatch,
  MemoryObject,
  MemoryObjects,
  MemoryPageOptions,
  MemoryPaths,
  MemoryProvenance,
  MemorySearchOptions,
  MemorySearchPage,
  MemoryShare,
  MemorySharesPage,
  MemoryVersion,
  MemoryWritten,
} from './memory-client/memory-client-shapes.ts'
export { brigadeMemoryFunction, brigadeMemoryTool, memoryToolHandlers } from './memory-tool/memory-tool.ts'
export type { MemoryToolCommand } from './memory-tool/memory-tool-commands.ts'
export type { MemoryToolHandlers, MemoryToolOptions } from './memory-tool/memory-tool-handlers.ts'
export type { MemoryMounts } from './memory-tool/memory-tool-mounts.ts'
export type { AgentToken, Secret, TokenMintOptions } from './token-mint.ts'
export { type AgentTokenOptions, type AgentTokenProvider, createAgentTokenProvider } from './token-provider.ts'
export type { Credential, TokenParams, TokenSource } from './token-source.ts'
export { type GatewayTool, type ToolCallResult, type ToolContent, type ToolListOptions, type ToolsClient, toolsClient } from './tools-client.ts'
