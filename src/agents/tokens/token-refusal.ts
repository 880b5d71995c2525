import { fail, type GatewayError } from '../../platform/errors.ts'

/**
 * Why an agent token is refused. After `token_expired`, the caller should mint a new token. After every other reason, neither a retry nor a new mint
 * with the same key and agent helps.
 */
export type RefusalReason = 'token_expired' | 'agent_revoked' | 'key_revoked' | 'token_revoked' | 'token_invalid'

const messages: Record<RefusalReason, string> = {
  token_expired: 'This agent token has expired. Mint a new one.',
  agent_revoked: 'This agent has been revoked. Stop: its tokens work no more.',
  key_revoked: 'The API key that minted this agent token is no longer valid.',
  token_revoked: 'This agent token has been revoked. Mint a new one if you still may.',
  token_invalid: 'This is not a valid agent token of this gateway.',
}

/** Returns the error for ids that do not exist and for ids of other organisations. */
export const noAgent = (): GatewayError => fail('not_found', { message: 'There is no such agent.' })

/** Returns the 401 for an agent token: `invalid_api_key`, with the reason as a field of the body and in the `WWW-Authenticate` challenge (RFC 6750). */
export function refused(reason: RefusalReason, cause?: unknown): GatewayError {
  return fail('invalid_api_key', {
    message: messages[reason],
    extra: { reason },
    headers: { 'www-authenticate': `Bearer realm="brigade", error="invalid_token", error_description="${reason}"` },
    ...(cause === undefined ? {} : { cause }),
  })
}
