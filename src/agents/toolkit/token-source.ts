import type { AgentRevokedError } from './brigade-error.ts'

/** What a caller knows when it asks for a token. */
export interface TokenWish {
  /** The last token was refused: another one is needed although this one seems good. Many of these at once come to one mint. */
  readonly forceRefresh?: boolean
  /** The token that was refused. A source that has another one by now gives that instead of making one more. */
  readonly refused?: string
}

/** Where a bearer comes from: an agent's token provider, or anything with the same one method. */
export interface TokenSource {
  /** A token that is good now. Throws BrigadeError, AgentRevokedError once the agent is gone. */
  getToken(wish?: TokenWish): Promise<string>
  /** Called by the fetch wrapper when the gateway said that the agent is revoked: from now on `getToken` throws this, without asking anybody. */
  noteRevoked?(error: AgentRevokedError): void
}

/** An API key (`br-…`), an agent token, or a source of tokens. */
export type Credential = string | TokenSource

/** The source behind a credential; a plain string is always the token. */
export function sourceOf(credential: Credential): TokenSource {
  return typeof credential === 'string' ? { getToken: async () => credential } : credential
}
