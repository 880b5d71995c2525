/** Converts failures of calls to an S3 store to errors of the port. */
import { ObjectStoreError, type ObjectStoreErrorKind } from '../object-store.ts'

/** Returns the HTTP status of a failed call. Returns null when there was no reply. */
export function statusOf(error: unknown): number | null {
  const status = (error as { $metadata?: { httpStatusCode?: unknown } } | null)?.$metadata?.httpStatusCode
  return typeof status === 'number' ? status : null
}

function attemptsOf(error: unknown): number {
  const attempts = (error as { $metadata?: { attempts?: unknown } } | null)?.$metadata?.attempts
  return typeof attempts === 'number' ? attempts : 1
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : ''
}

/** Returns whether the store refused keys because they have expired, after it had accepted them. */
export function isExpired(error: unknown): boolean {
  return /^(ExpiredToken|ExpiredTokenException|InvalidToken|TokenRefreshRequired)$/.test(nameOf(error))
}

/** Returns the error of the port for an SDK error. Messages never repeat the text of the store, which may quote keys and credentials. */
export function translated(error: unknown, isConditional: boolean): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  const status = statusOf(error)
  // The SDK tries twice, and the answer to the second try does not show the result of the first.
  const wasTriedBefore = attemptsOf(error) > 1
  const made = (kind: ObjectStoreErrorKind, message: string, mayHaveHappened = false): ObjectStoreError =>
    new ObjectStoreError(kind, message, { cause: error, mayHaveHappened: mayHaveHappened || wasTriedBefore })
  const name = nameOf(error)
  if (name === 'NoSuchBucket') return made('no-bucket', 'the bucket does not exist')
  if (status === 507 || /Quota|StorageFull|InsufficientStorage|DiskFull/.test(name)) return made('full', 'the store is full')
  if (status === 429 || status === 503 || name === 'SlowDown' || /^KMS.*Throttl/.test(name))
    return made('overloaded', `the store answered ${status}: it has too much to do`)
  // If-Match on a missing object is a 404 in S3. For the caller it is a condition that does not hold.
  if (status === 404) return isConditional ? made('precondition-failed', 'there is no such object') : made('not-found', 'no such object')
  if (status === 412 || status === 409) return made('precondition-failed', 'the condition does not hold')
  if (status === 501 || (isConditional && status === 400)) return made('unsupported', 'the store does not know this form of the call')
  if (status === 301 || status === 307) return made('unavailable', 'the bucket is in another region, and the store does not say in which')
  if (status === 401 || status === 403 || (status === 400 && /Signature|AccessKey|Token|Authorization/.test(name)))
    return made('denied', 'the store refused the credentials')
  if (status !== null) return made('unavailable', `the store answered ${status}`, status >= 500)
  const code = codeOf(error)
  // No request was sent when the connection could not be made.
  const neverSent = code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'BLOCKED_ADDRESS'
  return made('unavailable', silenceOf(code), !neverSent)
}

const silences: Readonly<Record<string, string>> = {
  BLOCKED_ADDRESS: 'the endpoint leads to an address that is not public',
  ENOTFOUND: 'the host name of the endpoint is not known',
  EAI_AGAIN: 'the host name of the endpoint could not be looked up',
  ECONNREFUSED: 'the connection was refused: nothing listens at the endpoint',
  ECONNRESET: 'the store closed the connection',
  UND_ERR_SOCKET: 'the store closed the connection',
  UND_ERR_CONNECT_TIMEOUT: 'the store took no connection in time',
  UND_ERR_HEADERS_TIMEOUT: 'the store did not answer in time',
  UND_ERR_BODY_TIMEOUT: 'the store did not answer in time',
  ETIMEDOUT: 'the store did not answer in time',
  TimeoutError: 'the store did not answer in time',
}

/** Returns the reason why the store did not answer, in words for the person who configures it. */
function silenceOf(code: string): string {
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|EPROTO)/.test(code)) return `TLS failed (${code})`
  return silences[code] ?? 'the store did not answer as HTTP asks for'
}

/** Returns the code of a failed connection. For an error without a code it returns the name of the error. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : nameOf(error)
}
