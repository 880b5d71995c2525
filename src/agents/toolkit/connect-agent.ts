import { aiSdkOptions, anthropicOptions, langchainOptions, mcpArguments, openaiOptions } from './adapters/adapters.ts'
import { agentFetch } from './agent-fetch.ts'
import type { AgentRevokedError } from './brigade-error.ts'
import { gatewayAddress } from './gateway-address.ts'
import { type GatewayClient, gatewayClient } from './gateway-client.ts'
import { type MemoryClient, memoryClient } from './memory-client/memory-client.ts'
import type { Secret } from './token-mint.ts'
import { createAgentTokenProvider } from './token-provider.ts'
import { checkedSecret, isTokenSource, type TokenSource } from './token-source.ts'
import { type ToolsClient, toolsClient } from './tools-client.ts'

/** The address of the gateway, the agent, and its credential. */
export interface ConnectOptions {
  /** Address of the gateway, such as https://gateway.example.com. */
  readonly baseUrl: string
  /**
   * With `agent`, an API key of scope full, or a function that returns the current key. With `exchange`, a token of a trusted issuer. With neither,
   * the bearer itself (an API key or an agent token), or a source of tokens.
   */
  readonly credential: Secret | TokenSource
  /** Name or id of the agent. Its tokens are minted and renewed as long as the program runs. */
  readonly agent?: number | string | undefined
  /** True when the credential is a token to exchange, for example of a CI job or a pod. */
  readonly exchange?: boolean | undefined
  /**
   * Creates the agent when there is no active agent of that name. The default is false, because otherwise a restart would bring back an agent that
   * was revoked.
   */
  readonly create?: boolean | undefined
  /** Some of `inference memory:read memory:write usage:read tools:call`. When it is left out, the token gets all of them. */
  readonly scope?: string | undefined
  /** Seconds that a token lives. When it is left out, the default of the gateway applies. */
  readonly ttlS?: number | undefined
  /** Is called once, when the gateway says that the agent is revoked. */
  readonly onRevoked?: ((error: AgentRevokedError) => void) | undefined
  /** Replaces the global fetch, for proxies and tests. */
  readonly fetch?: typeof fetch | undefined
  /** The User-Agent of requests for which no framework sets one. */
  readonly userAgent?: string | undefined
}

/** The reply of `GET /v1/me/whoami`. */
export interface AgentIdentity {
  readonly principal: { readonly kind: 'key' | 'agent'; readonly id: number; readonly name: string }
  readonly org: { readonly id: number; readonly name: string }
  readonly user: { readonly id: number } | null
  readonly workspace_id: number | null
  readonly agent: { readonly id: number; readonly name: string } | null
  readonly key: { readonly id: number; readonly name: string }
  readonly role: 'member' | 'admin' | 'owner' | null
  readonly scope: string
  readonly token_expires_at: string | null
  readonly limits: { readonly rpm_limit: number | null; readonly daily_limit: number | null }
  /** The budget that binds the agent and has the least left. Null without a budget. */
  readonly budget: Pick<AgentBudget, 'scope' | 'id' | 'cap_inr' | 'spent_inr' | 'remaining_inr' | 'state' | 'resets_at'> | null
  /** Prepaid credit of the organisation. Null when nothing is prepaid. A trial key is free only on the platform's models in India. */
  readonly credit: { readonly balance_inr: number; readonly trial: boolean } | null
  readonly memory: { readonly configured: boolean }
  readonly version: string
}

/** One budget that binds the agent, in rupees. */
export interface AgentBudget {
  readonly scope: string
  readonly id: string
  readonly period: 'ever' | 'month' | 'week' | 'day'
  readonly cap_inr: number
  readonly strict: boolean
  readonly spent_inr: number
  readonly held_inr: number
  readonly in_doubt_inr: number
  readonly remaining_inr: number
  /** What a person has granted beside the cap, and until when. Absent when nothing is. */
  readonly increase_inr?: number | undefined
  readonly increase_until?: string | undefined
  readonly state: 'under' | 'warned' | 'blocked'
  /** The marks besides 80 and 100 percent. */
  readonly warn_percent: readonly number[]
  /** Null when the period never ends. */
  readonly resets_at: string | null
}

/** A connection to a gateway as one agent. All clients of the connection share its token. */
export interface ConnectedAgent {
  readonly baseUrl: string
  /** Signs requests to the gateway, and no other requests. It accepts paths such as `/v1/models`. */
  readonly fetch: typeof fetch
  /** The source of the bearer tokens. */
  readonly tokens: TokenSource
  /** The management API. Refusals are thrown as BrigadeError. */
  readonly gateway: GatewayClient
  /** Shared memory. */
  readonly memory: MemoryClient
  /** The approved tools of MCP servers that the agent may call. */
  readonly tools: ToolsClient
  /** Returns the options for `new OpenAI(agent.openai())`. */
  openai(): ReturnType<typeof openaiOptions>
  /** Returns the options for `new Anthropic(agent.anthropic())`. */
  anthropic(): ReturnType<typeof anthropicOptions>
  /** Returns the options for `createOpenAICompatible(agent.aiSdk())`, `createOpenAI(agent.aiSdk())` and `createAnthropic(agent.aiSdk())`. */
  aiSdk(): ReturnType<typeof aiSdkOptions>
  /** Returns options for `new ChatOpenAI({ model, ...agent.langchain() })`. */
  langchain(): ReturnType<typeof langchainOptions>
  /** Returns the options for `setDefaultOpenAIClient(new OpenAI(agent.openaiAgents()))`. */
  openaiAgents(): ReturnType<typeof openaiOptions>
  /** Returns the arguments for `new StreamableHTTPClientTransport(...agent.mcp())`. */
  mcp(options?: { readonly toolsets?: readonly string[] }): ReturnType<typeof mcpArguments>
  /** Returns the identity of this agent. */
  whoami(options?: { readonly signal?: AbortSignal }): Promise<AgentIdentity>
  /** Returns the budgets that bind the agent, and the amounts left. */
  budget(options?: { readonly signal?: AbortSignal }): Promise<readonly AgentBudget[]>
}

/** Connects a program to a gateway as one agent. Nothing is sent before the first call. Throws TypeError for options that cannot work. */
export function connectAgent(options: ConnectOptions): ConnectedAgent {
  const baseUrl = gatewayAddress(options.baseUrl)
  const inner = options.fetch ?? fetch
  const tokens = tokensOf(options)
  const signed = agentFetch(tokens, inner, { baseUrl, userAgent: options.userAgent })
  const target = { baseUrl, fetch: signed }
  const gateway = gatewayClient({ baseUrl, credential: tokens, fetch: inner })
  return {
    baseUrl,
    fetch: signed,
    tokens,
    gateway,
    memory: memoryClient(gateway),
    tools: toolsClient(gateway),
    openai: () => openaiOptions(target),
    anthropic: () => anthropicOptions(target),
    aiSdk: () => aiSdkOptions(target),
    langchain: () => langchainOptions(target),
    openaiAgents: () => openaiOptions(target),
    mcp: params => mcpArguments(target, params),
    whoami: ({ signal } = {}) => gateway.json('GET', '/v1/me/whoami', signal === undefined ? {} : { signal }),
    budget: async ({ signal } = {}) =>
      (await gateway.json<{ budgets: readonly AgentBudget[] }>('GET', '/v1/me/budgets', signal === undefined ? {} : { signal })).budgets,
  }
}

function tokensOf({ credential, ...options }: ConnectOptions): TokenSource {
  const isMinted = options.agent !== undefined || options.exchange === true
  if (isTokenSource(credential)) {
    if (isMinted) throw new TypeError('A source of tokens is one of an agent already: leave agent and exchange out.')
    return credential
  }
  if (isMinted) return createAgentTokenProvider({ ...options, credential })
  return { getToken: async () => checkedSecret(typeof credential === 'function' ? await credential() : credential) }
}
