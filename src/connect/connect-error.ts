/** Why a client is not connected. The message is a sentence or a clause for people, and it contains no secret. */
export class ConnectError extends Error {
  override readonly name = 'ConnectError'
  /** `usage`: the client does not support the request. `config_not_changed`: a settings file stays as it is. */
  readonly code: 'usage' | 'config_not_changed'

  constructor(message: string, code: 'usage' | 'config_not_changed', cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.code = code
  }
}

/** Returns the error for parameters that the client does not support. */
export function wrongUsage(message: string): ConnectError {
  return new ConnectError(message, 'usage')
}
