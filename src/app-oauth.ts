/** Trust rules, token exchange, introspection and revocation, as services of rows; and the regular rotation of signing keys. */
import { TokenExchange } from './agents/oauth-exchange.ts'
import { IssuerKeys } from './agents/oauth-issuer-keys.ts'
import { TokenDesk } from './agents/oauth-tokens.ts'
import { TrustRules } from './agents/trust.ts'
import type { AppParts } from './app-services.ts'
import { looksLikeKey } from './gateway/keys/key-format.ts'

const dayMs = 24 * 3600_000
/** How often it is looked whether a signing key is due, and which revocations have run out. */
const lookMs = 3600_000

export function oauthServices(parts: AppParts) {
  const { db, clock, log, config, controlLog, agents, keys, limits, outbound, audit, jobs, baseUrl } = parts
  const { tokens, revokedTokens, signingKeys } = agents
  const trust = new TrustRules({ db, clock, controlLog, agents, keys, guard: outbound.guard, baseUrl })
  const tokenExchange = new TokenExchange({
    clock,
    tokens,
    keys,
    trust,
    issuerKeys: new IssuerKeys({ clock, log, outbound }),
    baseUrl,
    takeRate: principal => limits.takeRate(principal),
    record: ({ agent, ruleId, sourceIp, requestId }) =>
      audit.record({ orgId: agent.orgId, actor: agent, act: 'exchangeToken', target: `id=${ruleId}`, sourceIp, requestId }, 'ok'),
  })
  const tokenDesk = new TokenDesk({ tokens, revokedTokens, baseUrl, looksLikeKey, budgets: agents.budgets })
  jobs.every('tokens.sweep', lookMs, async () => {
    await revokedTokens.sweep()
  })
  if (config.SIGNING_KEY_ROTATE_DAYS > 0)
    jobs.every('signing_keys.rotate', lookMs, async () => {
      const rotation = await signingKeys.rotate({ minAgeMs: config.SIGNING_KEY_ROTATE_DAYS * dayMs })
      if (rotation.kind !== 'rotated') return
      await audit.record({ orgId: null, actor: 'system', act: 'rotateSigningKey', target: null, sourceIp: null, requestId: null }, 'ok')
    })
  return { trust, tokenExchange, tokenDesk }
}
