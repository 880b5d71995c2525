/** Where a bearer comes from: an agent's token provider, or anything with the same one method. */
export interface TokenSource {
  /** A token that is good now. `forceRefresh`: the last one was refused as expired. Throws BrigadeError, AgentRevokedError once the agent is gone. */
  getToken(options?: { readonly forceRefresh?: boolean }): Promise<string>
}

/** An API key (`br-…`), an agent token, or a source of tokens. */
export type Credential = string | TokenSource

/** The source behind a credential; a plain string is always the token. */
export function sourceOf(credential: Credential): TokenSource {
  return typeof credential === 'string' ? { getToken: async () => credential } : credential
}
