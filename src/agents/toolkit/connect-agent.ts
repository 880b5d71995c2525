import { aiSdkOptions, anthropicOptions, langchainOptions, mcpArguments, openaiOptions } from './adapters/adapters.ts'
import { agentFetch } from './agent-fetch.ts'
import type { AgentRevokedError } from './brigade-error.ts'
import { gatewayAddress } from './gateway-address.ts'
import { type GatewayClient, gatewayClient } from './gateway-client.ts'
import { type MemoryClient, memoryClient } from './memory-client/memory-client.ts'
import type { Secret } from './token-mint.ts'
import { createAgentTokenProvider } from './token-provider.ts'
import { checkedSecret, isTokenSource, type TokenSource } from './token-source.ts'

/** The gateway, the agent, and its credential. */
export interface ConnectOptions {
  /** Address of the gateway, such as https://gateway.example.com. */
  readonly baseUrl: string
  /**
   * With `agent`: an API key of scope full, or a function that returns the current key. With `exchange`: a token of a trusted issuer. With neither: the
   * bearer itself, an API key or an agent token, or a source of tokens.
   */
  readonly credential: Secret | TokenSource
  /** Name or id. Its tokens are minted and renewed as long as the program runs. */
  readonly agent?: number | string | undefined
  /** The credential is a token to exchange, of a CI job or a pod. */
  readonly exchange?: boolean | undefined
  /** Make the agent when there is no active one of that name. Default: no, because a restart would then bring back an agent that was revoked. */
  readonly create?: boolean | undefined
  /** Some of `inference memory:read memory:write usage:read`. Left out: all. */
  readonly scope?: string | undefined
  /** Seconds that a token lives. Left out: the default of the gateway. */
  readonly ttlS?: number | undefined
  /** Called once, when the gateway says that the agent is revoked. */
  readonly onRevoked?: ((error: AgentRevokedError) => void) | undefined
  /** Replaces the global fetch, for proxies and tests. */
  readonly fetch?: typeof fetch | undefined
  /** User-Agent of requests for which no framework sets one. */
  readonly userAgent?: string | undefined
}

/** What `GET /v1/me/whoami` says. */
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
  /** The binding budget with the least left; null without a budget. */
  readonly budget: Pick<AgentBudget, 'scope' | 'id' | 'cap_inr' | 'spent_inr' | 'remaining_inr' | 'state' | 'resets_at'> | null
  /** Prepaid credit of the organisation; null where nothing is prepaid. A key on trial is free on the platform's models in India only. */
  readonly credit: { readonly balance_inr: number; readonly trial: boolean } | null
  readonly memory: { readonly configured: boolean }
  readonly version: string
}

/** One monthly budget that binds the agent, in rupees. */
export interface AgentBudget {
  readonly scope: string
  readonly id: string
  readonly cap_inr: number
  readonly strict: boolean
  readonly spent_inr: number
  readonly held_inr: number
  readonly in_doubt_inr: number
  readonly remaining_inr: number
  readonly state: 'under' | 'warned' | 'blocked'
  readonly resets_at: string
}

/** A connection to a gateway as one agent. Everything made from it shares its token. */
export interface ConnectedAgent {
  readonly baseUrl: string
  /** Signs requests to the gateway, and no other requests. It accepts paths such as `/v1/models`. */
  readonly fetch: typeof fetch
  /** The source of the bearer tokens. */
  readonly tokens: TokenSource
  /** The management API; refusals are thrown as BrigadeError. */
  readonly gateway: GatewayClient
  /** Shared memory. */
  readonly memory: MemoryClient
  /** For `new OpenAI(agent.openai())`. */
  openai(): ReturnType<typeof openaiOptions>
  /** For `new Anthropic(agent.anthropic())`. */
  anthropic(): ReturnType<typeof anthropicOptions>
  /** For `createOpenAICompatible(agent.aiSdk())`, `createOpenAI(agent.aiSdk())`, `createAnthropic(agent.aiSdk())`. */
  aiSdk(): ReturnType<typeof aiSdkOptions>
  /** For `new ChatOpenAI({ model, ...agent.langchain() })`. */
  langchain(): ReturnType<typeof langchainOptions>
  /** For `setDefaultOpenAIClient(new OpenAI(agent.openaiAgents()))`. */
  openaiAgents(): ReturnType<typeof openaiOptions>
  /** For `new StreamableHTTPClientTransport(...agent.mcp())`. */
  mcp(options?: { readonly toolsets?: readonly string[] }): ReturnType<typeof mcpArguments>
  /** The identity of this agent. */
  whoami(options?: { readonly signal?: AbortSignal }): Promise<AgentIdentity>
  /** The budgets that bind it, and the amounts left. */
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
