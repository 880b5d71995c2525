import { type AgentRevokedError, BrigadeError } from './brigade-error.ts'

/** The parameters of a request for a token. */
export interface TokenParams {
  /** True when the gateway refused the last token although it seems valid here. Concurrent calls share one mint. */
  readonly forceRefresh?: boolean
  /** The token that was refused. A source that already has another token returns that token instead of minting. */
  readonly refused?: string
}

/** A source of bearer tokens: the token provider of an agent, or any object with the same method. */
export interface TokenSource {
  /** Returns a token that is valid now. Throws BrigadeError, and AgentRevokedError once the agent is revoked. */
  getToken(params?: TokenParams): Promise<string>
  /** Is called by the fetch wrapper when the gateway says that the agent is revoked. Afterwards `getToken` throws this error without a request. */
  noteRevoked?(error: AgentRevokedError): void
}

/** An API key (`br-…`), an agent token, or a source of tokens. */
export type Credential = string | TokenSource

/** Returns the source of a credential. A plain string is used as the token itself. */
export function sourceOf(credential: Credential): TokenSource {
  return isTokenSource(credential) ? credential : { getToken: async () => credential }
}

/** Returns whether this is a source of tokens. Programs without types may pass undefined, such as an environment variable that is not set. */
export function isTokenSource(credential: unknown): credential is TokenSource {
  return typeof credential === 'object' && credential !== null
}

/**
 * Returns a key or token without the space around it. Throws BrigadeError `invalid_credential` for an invalid text. The message never contains the
 * text. Fetch would refuse the text too, but its error would contain the text.
 */
export function checkedSecret(secret: unknown): string {
  const text = typeof secret === 'string' ? secret.trim() : ''
  if (text === '') throw invalidCredential('The credential is empty: give an API key or a token, such as one from a variable of the environment that is set.')
  if (!/^[\x21-\x7e]+$/.test(text))
    throw invalidCredential('The credential has a space, a line break or another character that no key or token has: give the key alone, on one line.')
  return text
}

function invalidCredential(message: string): BrigadeError {
  return new BrigadeError({ status: 401, code: 'invalid_credential', message, shouldRetry: false })
}
