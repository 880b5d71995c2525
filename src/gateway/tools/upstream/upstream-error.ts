import { GatewayError } from '../../../platform/errors.ts'

/** Why a server gave no usable answer. `rpc`: it answered with an error of the protocol, for example that it does not know the tool. */
export type UpstreamFailure = 'unauthorized' | 'unavailable' | 'timeout' | 'too_large' | 'protocol' | 'cancelled' | 'blocked_address' | 'rpc'

export interface UpstreamFacts {
  /** The HTTP status of the server. */
  readonly status?: number
  /** Seconds that the server asks to wait, at most a day. */
  readonly retryAfterSeconds?: number
  /** The bytes that had arrived, for `too_large`. The whole reply can be larger. */
  readonly sizeBytes?: number
  /** The bound of values, when their number was too large and not the bytes. */
  readonly valuesMax?: number
  /** The code of an `rpc` error. */
  readonly rpcCode?: number
  /** The text of an `rpc` error, bounded and with the server's secret masked. It comes from the server, so it belongs in no log. */
  readonly rpcMessage?: string
  /** The reason of the signal that ended a `cancelled` exchange. */
  readonly reason?: unknown
}

/** An exchange with a server of an organisation that failed. The message contains no text of the server. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: UpstreamFailure
  readonly facts: UpstreamFacts
  /** True when bytes of a call were sent, so that the server may have done its work. */
  isSent = false

  constructor(kind: UpstreamFailure, message: string, facts: UpstreamFacts = {}) {
    super(message)
    this.kind = kind
    this.facts = facts
  }
}

/** The codes of errors that come before a byte of the request leaves. */
const beforeSending = new Set([
  'BLOCKED_ADDRESS',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** Returns true when a dial failed before the first byte of the request left. */
export const isBeforeSending = (error: unknown): boolean => error instanceof GatewayError || beforeSending.has(codeOf(error))

/** Returns the error of a dial, or of a body that broke off. */
export function networkError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error
  const code = codeOf(error)
  // The guard throws `bad_request` for an address that users may not reach.
  if (code === 'BLOCKED_ADDRESS' || error instanceof GatewayError) return new UpstreamError('blocked_address', 'the address is not public')
  return new UpstreamError('unavailable', `the server could not be reached (${code})`)
}

/** Returns the error of a status that is no answer, or null for a status that the protocol reads. */
export function statusError(status: number, retryAfter: string | null): UpstreamError | null {
  if (status >= 300 && status < 400) return new UpstreamError('protocol', 'the server answered with a redirect, which is not followed', { status })
  if (status === 401 || status === 403) return new UpstreamError('unauthorized', `the server refused the credential (${status})`, { status })
  if (status !== 429 && status < 500) return null
  const seconds = retryAfter !== null && /^\d{1,5}$/.test(retryAfter) ? { retryAfterSeconds: Math.min(86_400, Number(retryAfter)) } : {}
  return new UpstreamError('unavailable', `the server answered ${status}`, { status, ...seconds })
}

/** Returns the code of an error, or the name of its class. */
export function codeOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') return error.code
  return error instanceof Error ? error.name : 'unknown'
}
