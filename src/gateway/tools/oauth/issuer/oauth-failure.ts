/**
 * Why an issuer of tokens gave none.
 * - `unavailable`: it could not be reached, or answered 429 or 5xx.
 * - `blocked_address`: one of its addresses is not public.
 * - `protocol`: its documents or answers are not as the protocol says.
 * - `moved`: the server names another issuer or resource than the one that the credential belongs to.
 * - `grant`: the grant is no longer valid, so a person must consent again.
 * - `refused`: it refused the client, the scopes or the request.
 */
export type OAuthFailureKind = 'unavailable' | 'blocked_address' | 'protocol' | 'moved' | 'grant' | 'refused'

/** An exchange with an issuer that failed. The message contains no text and no secret of the issuer, so it can be shown and logged. */
export class OAuthFailure extends Error {
  override readonly name = 'OAuthFailure'
  readonly kind: OAuthFailureKind

  /** The cause must come from the network or the URL guard, because answers of an issuer contain secrets. */
  constructor(kind: OAuthFailureKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Maximum number of nested `cause` errors that are examined. */
const depthMax = 5

/** Returns the OAuthFailure among an error and its causes, because the OAuth client wraps what its `fetch` throws. Null when there is none. */
export function failureIn(thrown: unknown): OAuthFailure | null {
  let next = thrown
  for (let depth = 0; depth < depthMax && typeof next === 'object' && next !== null; depth++) {
    if (next instanceof OAuthFailure) return next
    next = 'cause' in next ? next.cause : null
  }
  return null
}
