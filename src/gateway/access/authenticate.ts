import type { IncomingHttpHeaders } from 'node:http'
import { fail } from '../../platform/errors.ts'
import type { AgentPrincipal, BearerPrincipal, KeyPrincipal } from '../../platform/security/principal.ts'
import { keyStart, looksLikeKey } from '../keys/key-format.ts'
import type { KeyRecord, Keys } from '../keys/keys.ts'

/** Verifies agent tokens. The agents domain provides it. */
export interface TokenVerifier {
  /**
   * Returns the principal of a token. Throws 401 with the `reason` token_expired or agent_revoked, or throws 503. Returns without a promise when this
   * process has already verified the token.
   */
  principalOf(token: string): AgentPrincipal | Promise<AgentPrincipal>
}

/** The `www-authenticate` header of a 401 for an invalid bearer credential. */
export const challenge = { 'www-authenticate': 'Bearer realm="brigade", error="invalid_token"' }

/** Returns the token of `Authorization: Bearer …` (scheme in any case, extra spaces allowed), or null. */
export function bearerToken(headers: IncomingHttpHeaders): string | null {
  const header = headers.authorization
  if (header === undefined) return null
  const match = /^\s*bearer\s+(\S+)\s*$/i.exec(header)
  return match?.[1] ?? null
}

const howToSend = 'Send "Authorization: Bearer <API key or agent token>".'
const nothingSent = `No credential was sent. ${howToSend}`
const noBearer = `The Authorization header is not a bearer credential. ${howToSend}`
const cutOff = 'This has the beginning of an API key and not the length or the characters of one. Check that it was copied whole.'
const notOurs = `This is no credential of this gateway: its API keys begin with "${keyStart}", and its agent tokens are JWTs. ${howToSend}`

/** Finds the principal of a request's bearer credential. It finds an API key by its hash, and verifies the signature of an agent token. */
export class Authenticator {
  readonly #keys: Keys
  readonly #tokens: TokenVerifier
  readonly #principals = new WeakMap<KeyRecord, KeyPrincipal>()

  constructor(keys: Keys, tokens: TokenVerifier) {
    this.#keys = keys
    this.#tokens = tokens
  }

  /**
   * Throws `invalid_api_key` or `key_disabled_inactive`. When the database is unreachable, its own error is thrown. Returns without a promise when
   * the principal is cached.
   */
  authenticate(headers: IncomingHttpHeaders): BearerPrincipal | Promise<BearerPrincipal> {
    const token = bearerToken(headers)
    if (token === null) throw fail('invalid_api_key', { message: headers.authorization === undefined ? nothingSent : noBearer, headers: challenge })
    return this.byToken(token)
  }

  byToken(token: string): BearerPrincipal | Promise<BearerPrincipal> {
    if (looksLikeKey(token)) {
      const record = this.#keys.findForAuth(token)
      return record instanceof Promise ? record.then(found => this.#ofKey(found)) : this.#ofKey(record)
    }
    if (token.split('.').length === 3) return this.#tokens.principalOf(token)
    throw fail('invalid_api_key', { message: token.startsWith(keyStart) ? cutOff : notOurs, headers: challenge })
  }

  #ofKey(record: KeyRecord | null): KeyPrincipal {
    if (record === null) throw fail('invalid_api_key', { message: 'This API key is not known. Check that it was copied whole.', headers: challenge })
    switch (record.state) {
      case 'active':
        break
      case 'disabled_inactive':
        throw fail('key_disabled_inactive', { headers: challenge })
      case 'disabled':
        throw fail('invalid_api_key', { message: 'This API key is disabled. An owner or admin can enable it again.', headers: challenge })
      case 'expired':
        throw fail('invalid_api_key', { message: 'This API key has expired. Make a new one.', headers: challenge })
      case 'revoked':
        throw fail('invalid_api_key', { message: 'This API key has been revoked.', headers: challenge })
      case 'rotated':
        throw fail('invalid_api_key', { message: 'This API key was rotated and the old secret has ended. Use the new one.', headers: challenge })
    }
    this.#keys.touch(record)
    let principal = this.#principals.get(record)
    if (!principal) {
      principal = {
        kind: 'key',
        orgId: record.orgId,
        userId: record.userId,
        role: record.role,
        keyId: record.id,
        keyName: record.name,
        scope: record.scope,
        workspaceId: record.workspaceId,
        limits: record.limits,
        isTrial: record.isTrial,
        capabilities: record.capabilities,
        policies: record.policies,
      }
      this.#principals.set(record, principal)
    }
    return principal
  }
}
