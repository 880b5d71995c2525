/** The OAuth endpoints, in the form that OAuth libraries use: they read forms and return the errors of RFC 6749. */
import { z } from 'zod'
import { endpointOf, reply } from '../../platform/endpoint.ts'
import { fail } from '../../platform/errors.ts'
import type { TokenExchange } from './oauth-exchange.ts'
import { exchangeBody, exchangeFormOf, tokenBody } from './oauth-forms.ts'
import type { TokenIntrospection } from './token-introspection.ts'

const row = endpointOf<{ tokenExchange: TokenExchange; tokenIntrospection: TokenIntrospection }>()

const bodyLimitBytes = 64 * 1024
const notStored = { 'cache-control': 'no-store', pragma: 'no-cache' } as const

const issued = z.object({
  access_token: z.string(),
  issued_token_type: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().describe('Seconds.'),
  scope: z.string(),
})

const introspection = z.union([
  z.object({ active: z.literal(false) }),
  z.object({
    active: z.literal(true),
    iss: z.string(),
    sub: z.string(),
    aud: z.array(z.string()),
    client_id: z.string(),
    token_type: z.literal('Bearer'),
    scope: z.string(),
    iat: z.int(),
    nbf: z.int(),
    exp: z.int(),
    jti: z.string(),
    act: z.unknown().optional().describe('Who let the agent act (RFC 8693).'),
    agent: z.object({ id: z.int(), name: z.string(), status: z.literal('active'), ancestor_ids: z.array(z.int()) }),
    key_id: z.int(),
    monthly_budget_inr: z.number().nullable(),
    budget_remaining_inr: z.number().nullable().describe('Of the tightest monthly budget of the agent and those above it; null = they have none.'),
  }),
])

export const oauthEndpoints = {
  exchangeToken: row({
    at: 'POST /oauth/token',
    auth: 'public',
    access: {},
    clients: 'oauth',
    tag: 'agents',
    summary: 'Token exchange (RFC 8693): a token of a trusted issuer becomes a token of the agent that the trust rule names, an agent token a narrower one.',
    input: { bodyKind: 'form', body: exchangeBody, bodyLimitBytes },
    output: issued,
    errors: ['unsupported_media_type', 'unsupported_grant_type', 'invalid_target', 'invalid_scope', 'issuer_unavailable'],
    async handle({ tokenExchange }, { body }, call) {
      const form = exchangeFormOf(body, call.baseUrl)
      const minted = await tokenExchange.exchange(form, { sourceIp: call.clientIp() || null, requestId: call.requestId })
      const { access_token, token_type, expires_in, scope } = minted
      return reply.json({ access_token, issued_token_type: form.issuedType, token_type, expires_in, scope }, 200, notStored)
    },
  }),

  introspectToken: row({
    at: 'POST /oauth/introspect',
    auth: 'key',
    access: { scope: 'full' },
    clients: 'oauth',
    tag: 'agents',
    summary: 'What an agent token of the organisation is good for now, and what its agent may still spend (RFC 7662). For every other text: active false.',
    input: { bodyKind: 'form', body: tokenBody, bodyLimitBytes },
    output: introspection,
    errors: ['unsupported_media_type', 'forbidden'],
    audit: false,
    handle: async ({ tokenIntrospection }, { body }, call) => reply.json(await tokenIntrospection.introspect(call.principal, body.token), 200, notStored),
  }),

  revokeToken: row({
    at: 'POST /oauth/revoke',
    auth: 'key',
    access: {},
    clients: 'oauth',
    tag: 'agents',
    summary: 'Ends one agent token immediately and cuts its running calls (RFC 7009). It takes an API key of scope full, or the token itself.',
    input: { bodyKind: 'form', body: tokenBody, bodyLimitBytes },
    output: z.object({}),
    errors: ['unsupported_media_type', 'unsupported_token_type', 'forbidden'],
    async handle({ tokenIntrospection }, { body }, call) {
      if (call.principal.kind === 'session') throw fail('forbidden')
      await tokenIntrospection.revoke(call.principal, body.token)
      return reply.json({}, 200, notStored)
    },
  }),
}
