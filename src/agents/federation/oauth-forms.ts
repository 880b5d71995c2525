/** The forms of /oauth/*, and the part of RFC 8693 that an exchange supports. */
import { z } from 'zod'
import { fail } from '../../platform/errors.ts'
import { agentScopes } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'

/** The only supported grant type. */
export const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const typePrefix = 'urn:ietf:params:oauth:token-type:'
const subjectTypes = ['jwt', 'id_token', 'access_token'].map(name => typePrefix + name)
const issuedTypes = [`${typePrefix}access_token`, `${typePrefix}jwt`]

const oneOrMore = z.union([z.string(), z.array(z.string())]).optional()

/** The body of POST /oauth/token. Fields that depend on the grant type are optional here and are checked later. */
export const exchangeBody = z.object({
  grant_type: z.string().describe(exchangeGrant),
  subject_token: z.string().optional().describe('The token of another issuer that a trust rule takes, or an agent token of this gateway.'),
  subject_token_type: z
    .string()
    .optional()
    .describe(`One of ${subjectTypes.join(', ')}.`),
  requested_token_type: z
    .string()
    .optional()
    .describe(`${issuedTypes.join(' or ')}; left out: the first.`),
  scope: z
    .string()
    .optional()
    .describe(`Some of "${agentScopes.join(' ')}", as far as the rule or the subject token has them. Left out: all of those.`),
  agent_id: z.string().optional().describe('Which agent, where trust rules for several take the token.'),
  resource: oneOrMore.describe('Only the base URL of this gateway, or a URL below it.'),
  audience: oneOrMore.describe('The same.'),
  actor_token: z.string().optional().describe('Not taken.'),
  actor_token_type: z.string().optional().describe('Not taken.'),
})

/** The body of /oauth/introspect and /oauth/revoke. */
export const tokenBody = z.object({
  token: z.string().describe('An agent token.'),
  token_type_hint: z.string().optional().describe('Not looked at: there is one kind of token.'),
})

/** A requested exchange. */
export interface ExchangeForm {
  readonly subject_token: string
  readonly scope: string | undefined
  readonly agent_id: number | undefined
  /** The token type that the reply names. */
  readonly issuedType: string
}

/** Checks the form. Throws `unsupported_grant_type`, `bad_request` and `invalid_target`. */
export function exchangeFormOf(body: z.output<typeof exchangeBody>, baseUrl: string): ExchangeForm {
  if (body.grant_type !== exchangeGrant) throw fail('unsupported_grant_type')
  if (body.subject_token === undefined) throw fail('bad_request', { message: 'subject_token is missing.' })
  if (body.subject_token_type === undefined || !subjectTypes.includes(body.subject_token_type))
    throw fail('bad_request', { message: `subject_token_type must be one of ${subjectTypes.join(', ')}.` })
  const issuedType = body.requested_token_type ?? issuedTypes[0] ?? ''
  if (!issuedTypes.includes(issuedType)) throw fail('bad_request', { message: `requested_token_type must be one of ${issuedTypes.join(', ')}.` })
  if (body.actor_token !== undefined || body.actor_token_type !== undefined)
    throw fail('bad_request', { message: 'actor_token is not taken: the issuer and subject of the subject token become the actor (act) of the new one.' })
  for (const target of [body.resource ?? [], body.audience ?? []].flat()) if (!isOurs(target, baseUrl)) throw fail('invalid_target')
  const agentId = body.agent_id === undefined ? undefined : rowId(body.agent_id)
  if (agentId === null) throw fail('bad_request', { message: 'agent_id must be the id of an agent.' })
  return { subject_token: body.subject_token, scope: body.scope, agent_id: agentId, issuedType }
}

/** Returns whether the target is the gateway or a URL below it. Agent tokens are valid for the whole gateway. */
const isOurs = (target: string, baseUrl: string): boolean =>
  target === baseUrl || (target.startsWith(`${baseUrl}/`) && URL.canParse(target) && target.split('#').length === 1)
