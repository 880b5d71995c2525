import { type AgentRevokedError, BrigadeError } from './brigade-error.ts'

/** What a caller knows when it asks for a token. */
export interface TokenParams {
  /** The last token was refused: another one is needed although this one seems good. Many of these at once come to one mint. */
  readonly forceRefresh?: boolean
  /** The token that was refused. A source that has another one by now gives that instead of making one more. */
  readonly refused?: string
}

/** Where a bearer comes from: an agent's token provider, or anything with the same one method. */
export interface TokenSource {
  /** A token that is good now. Throws BrigadeError, AgentRevokedError once the agent is gone. */
  getToken(params?: TokenParams): Promise<string>
  /** Called by the fetch wrapper when the gateway said that the agent is revoked: from now on `getToken` throws this, without asking anybody. */
  noteRevoked?(error: AgentRevokedError): void
}

/** An API key (`br-…`), an agent token, or a source of tokens. */
export type Credential = string | TokenSource

/** The source behind a credential; a plain string is always the token. */
export function sourceOf(credential: Credential): TokenSource {
  return isTokenSource(credential) ? credential : { getToken: async () => credential }
}

/** Whether this has tokens. Programs without types also give nothing at all, such as a variable of the environment that is not set. */
export function isTokenSource(credential: unknown): credential is TokenSource {
  return typeof credential === 'object' && credential !== null
}

/**
 * A key or token without the space around it. Throws BrigadeError `invalid_credential` for what can be none. The message never repeats it:
 * fetch would refuse the same text, but with the whole of it in the error.
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
