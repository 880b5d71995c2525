/** What calls to an S3 store failed with, as the port names it. */
import { ObjectStoreError, type ObjectStoreErrorKind } from './object-store.ts'

/** The HTTP status of a failed call; null when there was no reply. */
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

/** An SDK error as the port names it. Messages never repeat what the store said: it may quote keys and credentials. */
export function translated(error: unknown, isConditional: boolean): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error
  const status = statusOf(error)
  // The SDK tries twice: what the second try says is not what became of the first.
  const wasTriedBefore = attemptsOf(error) > 1
  const made = (kind: ObjectStoreErrorKind, message: string, mayHaveHappened = false): ObjectStoreError =>
    new ObjectStoreError(kind, message, { cause: error, mayHaveHappened: mayHaveHappened || wasTriedBefore })
  const name = nameOf(error)
  if (name === 'NoSuchBucket') return made('no-bucket', 'the bucket does not exist')
  if (status === 507 || /Quota|StorageFull|InsufficientStorage|DiskFull/.test(name)) return made('full', 'the store is full')
  if (status === 429 || status === 503 || name === 'SlowDown') return made('overloaded', `the store answered ${status}: it has too much to do`)
  // If-Match on a missing object is a 404 in S3: for the caller it is a condition that does not hold.
  if (status === 404) return isConditional ? made('precondition-failed', 'there is no such object') : made('not-found', 'no such object')
  if (status === 412 || status === 409) return made('precondition-failed', 'the condition does not hold')
  if (status === 501 || (isConditional && status === 400)) return made('unsupported', 'the store does not know this form of the call')
  if (status === 401 || status === 403 || (status === 400 && /Signature|AccessKey|Token|Authorization/.test(name)))
    return made('denied', 'the store refused the credentials')
  if (status !== null) return made('unavailable', `the store answered ${status}`, status >= 500)
  const code = (error as { code?: unknown } | null)?.code
  // Nothing was sent when the connection could not be made.
  const neverSent = code === 'ECONNREFUSED' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' || code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'BLOCKED_ADDRESS'
  return made('unavailable', code === 'BLOCKED_ADDRESS' ? 'the endpoint leads to an address that is not public' : 'the store did not answer', !neverSent)
}
