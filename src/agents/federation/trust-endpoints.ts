import { z } from 'zod'
import { endpointOf } from '../../platform/endpoint.ts'
import { agentScopes } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { noRule, rulesMax, type TrustRules } from './trust.ts'
import { pastedKeys, plainText } from './trust-checks.ts'

const row = endpointOf<{ trust: TrustRules }>()

const textMax = 500
const claimsMax = 20
const text = z.string().trim().min(1).max(textMax).regex(plainText, 'must not hold control characters or halves of characters')

const rule = z.object({
  id: z.int(),
  name: z.string(),
  issuer: z.string(),
  audience: z.string(),
  subject: z.string(),
  claims: z.record(z.string(), z.string()),
  jwks_uri: z.string().nullable(),
  jwks: z.unknown().describe('The keys that were given with the rule; null: they are fetched.'),
  agent_id: z.int(),
  key_id: z.int(),
  scope: z.string(),
  ttl_s: z.int().nullable().describe('Life of the tokens in seconds; null: AGENT_TOKEN_TTL_S.'),
  created_at: z.string().describe('ISO 8601, UTC.'),
})

const params = z.strictObject({
  name: z.string().describe('1 to 100 characters.'),
  issuer: text.describe(
    'The iss of the tokens, exactly. Its keys are found through <issuer>/.well-known/openid-configuration unless jwks_uri or jwks says where.',
  ),
  audience: text.optional().describe('What the aud of the tokens must hold. Left out: <base URL>/orgs/<id of your organisation>.'),
  subject: text.describe('The sub that the tokens must have; * matches any run of characters.'),
  claims: z
    .record(z.string().min(1).max(100).regex(plainText), z.string().max(textMax).regex(plainText))
    .refine(claims => Object.keys(claims).length <= claimsMax, `at most ${claimsMax}`)
    .optional()
    .describe('More claims that must hold, in the same form.'),
  jwks_uri: text.optional().describe('Where the keys of an issuer without discovery are.'),
  jwks: pastedKeys.optional().describe('The public keys themselves (a JWK Set), for an issuer that the gateway cannot reach, such as a private cluster.'),
  agent_id: z.int().describe('The agent as which the tokens act.'),
  key_id: z
    .int()
    .describe('A key of scope full, your own or one without a user: its limits bind the tokens, the tokens act for its user, and they end with it.'),
  scope: z
    .string()
    .max(200)
    .optional()
    .describe(`Some of "${agentScopes.join(' ')}". Left out: all.`),
  ttl_s: z.int().min(1).optional().describe('Life of the tokens in seconds, at most AGENT_TOKEN_TTL_S.'),
})

export const trustEndpoints = {
  listTrust: row({
    at: 'GET /me/agent-trust',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'agents',
    summary: 'The trust rules: which tokens of other issuers are exchanged for tokens of which agents.',
    input: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(rulesMax).default(rulesMax).describe(`Rules of a page, at most ${rulesMax}.`),
        cursor: z.string().optional().describe('next_cursor of the page before.'),
      }),
    },
    output: z.object({
      rules: z.array(rule),
      next_cursor: z.string().nullable().describe('null: this was the last page. Long keys make a page shorter.'),
    }),
    errors: ['forbidden', 'bad_request'],
    handle: ({ trust }, { query }, call) => trust.list(call.principal.orgId, query.limit, query.cursor ?? null),
  }),

  createTrust: row({
    at: 'POST /me/agent-trust',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'agents',
    summary: 'Makes a trust rule: tokens of an OpenID Connect issuer (CI jobs, Kubernetes service accounts) can then be exchanged at POST /oauth/token.',
    input: { body: params },
    output: rule,
    status: 201,
    errors: ['bad_name', 'bad_request', 'not_found', 'agent_revoked', 'cap', 'forbidden'],
    handle: ({ trust }, { body }, call) => trust.create(call.principal, body),
  }),

  deleteTrust: row({
    at: 'DELETE /me/agent-trust/{id}',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'agents',
    summary: 'Deletes a trust rule and ends the tokens that were issued by it.',
    input: { path: z.object({ id: z.string() }) },
    output: z.object({ ok: z.literal(true) }),
    errors: ['not_found', 'forbidden'],
    async handle({ trust }, { path }, call) {
      const id = rowId(path.id)
      if (id === null) throw noRule()
      await trust.remove(call.principal.orgId, id)
      return { ok: true }
    },
  }),
}
