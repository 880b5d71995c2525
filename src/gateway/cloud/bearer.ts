import type { Authorised, Authoriser, CredentialState, UnauthorisedRequest } from './authorise.ts'
import { isReplaced, type Perishable, type Renewed } from './renewed.ts'

/** An access token of Google or Entra. */
export interface AccessToken extends Perishable {
  readonly token: string
  /** Further headers of every request with this token, such as `x-goog-user-project`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends access tokens as `Authorization: Bearer`. */
export class BearerAuthoriser implements Authoriser {
  readonly #tokens: Pick<Renewed<AccessToken>, 'get' | 'renew' | 'current'>
  readonly #source: string

  constructor(tokens: Pick<Renewed<AccessToken>, 'get' | 'renew' | 'current'>, source: string) {
    this.#tokens = tokens
    this.#source = source
  }

  async authorise({ headers }: UnauthorisedRequest): Promise<Authorised> {
    const found = this.#tokens.get()
    const token = found instanceof Promise ? await found : found
    return { headers: { ...headers, ...token.headers, authorization: `Bearer ${token.token}` }, used: token }
  }

  /** A token that has ended, or that was withdrawn, is answered with 401. A 403 means that the identity lacks a permission, so a new token does not help. */
  mayRetry({ status }: Parameters<Authoriser['mayRetry']>[0], used: object): boolean | Promise<boolean> {
    return status === 401 && isReplaced(this.#tokens, used as AccessToken)
  }

  describe(): CredentialState {
    const endMs = this.#tokens.current?.endMs ?? Number.POSITIVE_INFINITY
    return { source: this.#source, endMs: Number.isFinite(endMs) ? endMs : null }
  }
}
