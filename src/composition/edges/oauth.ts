/** Constructs the services for trust rules, token exchange, introspection and revocation, and the regular rotation of signing keys. */
import { ExternalSignIn } from '../../agents/federation/external-sign-in.ts'
import { TokenExchange } from '../../agents/federation/oauth-exchange.ts'
import { IssuerKeys } from '../../agents/federation/oauth-issuer-keys.ts'
import { TokenIntrospection } from '../../agents/federation/token-introspection.ts'
import { TrustRules } from '../../agents/federation/trust.ts'
import { bearerToken } from '../../gateway/access/authenticate.ts'
import type { EdgeDeps } from '../../gateway/http/edge.ts'
import type { McpPaths } from '../../gateway/http/server.ts'
import { looksLikeKey } from '../../gateway/keys/key-format.ts'
import { type ExternalSignInPort, oauthMount } from '../../mcp/oauth-mount.ts'
import type { Mcp } from '../../mcp/transport/transport.ts'
import { type Config, ConfigError } from '../../platform/config.ts'
import type { AppParts } from '../parts.ts'

const dayMs = 24 * 3600_000
/** The interval of the jobs that rotate due signing keys and delete expired revocations. */
const lookMs = 3600_000

/** Returns the MCP handler for clients that sign in at the configured issuer. Returns null when the operator has configured no issuer. */
export function mcpOfOrg({ SERVICE_ID: realm }: Config, mcp: Mcp, signIn: ExternalSignInPort | null, { baseUrl, authenticate }: EdgeDeps): McpPaths['ofOrg'] {
  if (signIn === null) return null
  const deps = { signIn, baseUrl, realm, bearerOf: bearerToken, authenticate }
  return (orgId, request, response) => void mcp.handle(request, response, oauthMount(orgId, deps))
}

/** Constructs the services and registers their jobs. Throws ConfigError if MCP_OAUTH_ISSUER is not a URL. */
export function oauthServices(parts: AppParts) {
  const { db, clock, log, config, controlLog, agents, keys, limits, outbound, audit, jobs, baseUrl, founders } = parts
  const { tokens, revokedTokens, signingKeys } = agents
  const trust = new TrustRules({ db, clock, controlLog, agents, keys, guard: outbound.guard, baseUrl })
  const tokenExchange = new TokenExchange({
    clock,
    tokens,
    keys,
    trust,
    issuerKeys: new IssuerKeys({ clock, log, outbound, founderOf: orgId => founders.of(orgId) }),
    baseUrl,
    takeRate: principal => limits.takeRate(principal),
    record: ({ agent, ruleId, sourceIp, requestId }) =>
      audit.record({ orgId: agent.orgId, actor: agent, act: 'exchangeToken', target: `id=${ruleId}`, sourceIp, requestId }, 'ok'),
  })
  const tokenIntrospection = new TokenIntrospection({ tokens, revokedTokens, baseUrl, looksLikeKey, budgets: agents.budgets })
  jobs.every('tokens.sweep', lookMs, async () => {
    await revokedTokens.sweep()
  })
  if (config.SIGNING_KEY_ROTATE_DAYS > 0)
    jobs.every('signing_keys.rotate', lookMs, async () => {
      const rotation = await signingKeys.rotate({ minAgeMs: config.SIGNING_KEY_ROTATE_DAYS * dayMs })
      if (rotation.kind !== 'rotated') return
      await audit.record({ orgId: null, actor: 'system', act: 'rotateSigningKey', target: null, sourceIp: null, requestId: null }, 'ok')
    })
  const issuer = config.MCP_OAUTH_ISSUER
  if (issuer !== null && !URL.canParse(issuer)) throw new ConfigError(`MCP_OAUTH_ISSUER must be a URL, not "${issuer}".`)
  const mcpOAuth = issuer === null ? null : new ExternalSignIn({ issuer, clock, exchange: tokenExchange, tokens, baseUrl })
  return { trust, tokenExchange, tokenIntrospection, mcpOAuth }
}
