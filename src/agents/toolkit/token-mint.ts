import { AgentRevokedError, BrigadeError } from './brigade-error.ts'
import { gatewayAddress } from './gateway-address.ts'
import { jsonOf, notTheGateway, okReply } from './gateway-reply.ts'
import { checkedSecret } from './token-source.ts'

/** An issued token. */
export interface AgentToken {
  readonly token: string
  /** Life in seconds, counted from the request. */
  readonly expiresInS: number
  /** The expiry by the clock of this machine, in milliseconds since 1970. The gateway's clock does not affect it. */
  readonly expiresAtMs: number
  readonly agentId: number | null
  /** The scopes of the token, with spaces between them. */
  readonly scope: string
}

/**
 * The text of a secret, or a function that returns the current secret. The function is called at each mint, so that it can return a renewed key or
 * platform token.
 */
export type Secret = string | (() => string | Promise<string>)

/** Options of a mint: the agent, its credential, and the scope and life of the token. */
export interface TokenMintOptions {
  /** Address of the gateway. */
  readonly baseUrl: string
  /**
   * Id of the agent, or name of an active agent. A text of digits is an id. It may be left out with `exchange`, because the trust rule names the
   * agent.
   */
  readonly agent?: number | string | undefined
  /**
   * An API key of scope full. With `exchange`, a token of an issuer that a trust rule accepts, such as the token of a CI job or a pod. With
   * `exchange`, it can also be an agent token whose rights should be narrowed.
   */
  readonly credential: Secret
  /** True when the credential is not an API key but a token to exchange at POST /oauth/token. */
  readonly exchange?: boolean | undefined
  /**
   * Creates the agent when there is no active agent of that name. The default is false, because otherwise a restart would bring back an agent that
   * was revoked.
   */
  readonly create?: boolean | undefined
  /**
   * Some of `inference memory:read memory:write usage:read tools:call`, with spaces between them. When it is left out, the token gets all scopes that the
   * credential may give.
   */
  readonly scope?: string | undefined
  /** Life in seconds. The maximum of the gateway (900) is also the default. In an exchange, the trust rule sets the life. */
  readonly ttlS?: number | undefined
  /** Replaces the global fetch. */
  readonly fetch?: typeof fetch | undefined
}

interface AgentRow {
  readonly id: number
  readonly name: string
  readonly status: string
}

interface Minted {
  readonly access_token: string
  readonly expires_in: number
  readonly scope: string
  readonly agent_id?: number
}

/** The timeout of a mint. */
const mintTimeoutMs = 20_000
/** Maximum number of pages, of 200 agents each, that are searched for a name. */
const pagesMax = 50

/**
 * Returns a function that requests a token each time it is called. A name is resolved to an id once. The function throws BrigadeError,
 * AgentRevokedError, and the errors of fetch.
 */
export function tokenMint(options: TokenMintOptions): () => Promise<AgentToken> {
  const { exchange = false } = options
  const agent = typeof options.agent === 'string' ? options.agent.trim() : options.agent
  if (agent === undefined ? !exchange : agent === '' || (typeof agent === 'number' && !Number.isSafeInteger(agent)))
    throw new TypeError('agent is missing: give the id or the name of the agent.')
  const baseUrl = gatewayAddress(options.baseUrl)
  const inner = options.fetch ?? fetch
  const request = async (path: string, authorization: string | null, init: RequestInit = {}): Promise<unknown> => {
    const headers = { ...(authorization === null ? {} : { authorization }), ...Object.fromEntries(new Headers(init.headers)) }
    // The request follows no redirect, so that the credential does not go to another address.
    const reply = await inner(`${baseUrl}${path}`, { ...init, headers, redirect: 'manual', signal: AbortSignal.timeout(mintTimeoutMs) })
    return jsonOf(baseUrl, await okReply(baseUrl, reply))
  }
  let id = idOf(agent)
  const mintWithKey = async (key: string): Promise<Minted> => {
    const authorization = `Bearer ${key}`
    const post = (path: string, body: object) =>
      request(path, authorization, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    if (id === null && options.create) id = ((await post('/v1/me/agents', { name: agent })) as AgentRow).id
    id ??= await idOfName(String(agent), baseUrl, path => request(path, authorization))
    const requested = { ...(options.scope === undefined ? {} : { scope: options.scope }), ...(options.ttlS === undefined ? {} : { ttl_s: options.ttlS }) }
    return (await post(`/v1/me/agents/${id}/token`, requested)) as Minted
  }
  const exchanged = async (subjectToken: string): Promise<Minted> => {
    const form = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: subjectToken,
      ...(options.scope === undefined ? {} : { scope: options.scope }),
      ...(id === null ? {} : { agent_id: String(id) }),
    })
    const minted = (await request('/oauth/token', null, { method: 'POST', body: form })) as Minted
    const whose = agentIn(minted.access_token)
    if (id === null && agent !== undefined && whose?.name !== agent) throw anotherAgent(String(agent), whose?.name)
    return { ...minted, ...(whose === null ? {} : { agent_id: whose.id }) }
  }
  return async () => {
    const secret = checkedSecret(typeof options.credential === 'function' ? await options.credential() : options.credential)
    const askedAtMs = Date.now()
    const minted = await (exchange ? exchanged(secret) : mintWithKey(secret))
    if (typeof minted.access_token !== 'string' || !(minted.expires_in > 0)) throw notTheGateway(baseUrl)
    const { access_token, expires_in, scope, agent_id } = minted
    return { token: access_token, expiresInS: expires_in, expiresAtMs: askedAtMs + expires_in * 1000, agentId: agent_id ?? null, scope }
  }
}

function idOf(agent: number | string | undefined): number | null {
  if (typeof agent === 'number') return agent
  return agent !== undefined && /^\d+$/.test(agent) ? Number(agent) : null
}

async function idOfName(name: string, baseUrl: string, get: (path: string) => Promise<unknown>): Promise<number> {
  let isRevoked = false
  let cursor: string | null = null
  for (let page = 0; page < pagesMax; page++) {
    const path: string = `/v1/me/agents?limit=200${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
    const { agents, next_cursor } = (await get(path)) as { agents: readonly AgentRow[]; next_cursor: string | null }
    if (!Array.isArray(agents)) throw notTheGateway(baseUrl)
    const found = (agents as readonly AgentRow[]).filter(agent => agent.name === name)
    const active = found.find(agent => agent.status === 'active')
    if (active !== undefined) return active.id
    isRevoked ||= found.length > 0
    cursor = next_cursor
    if (cursor === null) break
  }
  if (isRevoked)
    throw new AgentRevokedError({ status: 409, code: 'agent_revoked', message: `The agent "${name}" is revoked. Make a new one only if its owner agrees.` })
  throw new BrigadeError({
    status: 404,
    code: 'not_found',
    message: `There is no agent "${name}". Make it with POST /v1/me/agents, with "brigade agent create ${name}", or give create: true.`,
  })
}

function anotherAgent(asked: string, given: string | undefined): BrigadeError {
  const message = `The trust rule gives a token of the agent "${given ?? '?'}", not of "${asked}". Give the id of the agent where rules for several take the token.`
  return new BrigadeError({ status: 400, code: 'invalid_request', message })
}

/** Returns the agent that a token names. The token is not verified here, because the gateway just sent it. Only the gateway decides by its content. */
function agentIn(token: string): { readonly id: number; readonly name: string } | null {
  try {
    const payload = token.split('.')[1] ?? ''
    const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), character => character.charCodeAt(0))
    const { agent } = JSON.parse(new TextDecoder().decode(bytes))
    return typeof agent?.id === 'number' && typeof agent.name === 'string' ? { id: agent.id, name: agent.name } : null
  } catch {
    return null
  }
}
