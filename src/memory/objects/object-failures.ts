/** The errors that callers read when a memory call fails. */
import { fail, type GatewayError } from '../../platform/errors.ts'
import { authorInMetadata, writtenMsOf } from '../provenance.ts'
import { type ObjectHead, ObjectStoreError } from '../stores/object-store.ts'

/** Returns the error for an object that does not exist. */
export function noObject(): GatewayError {
  return fail('not_found', { message: 'There is no memory object of that key.' })
}

/** Returns the error for a credential that may not use this path. */
export function outsideScope(verb: string): GatewayError {
  return fail('forbidden', { message: `This credential may not ${verb} under that path. GET /v1/me/memory/paths lists its scopes.` })
}

/** Returns the error for a change of an appended entry. */
export function entryStands(): GatewayError {
  return fail('forbidden', {
    message: 'That is the name of an appended entry: entries are made with POST /v1/me/memory/append and never written again. Append a new one, or delete it.',
  })
}

/** Returns the error for a write that lost its intent, because it took too long or the store was reconfigured. */
export function lostIntent(): GatewayError {
  return fail('memory_store_failed', {
    message: 'This call took too long, or the store was reconfigured while it ran. Read the object to see what is there.',
  })
}

/** Returns 412 with the etag of the current object. */
export function conflictOf(head: ObjectHead | null): GatewayError {
  const extra =
    head === null
      ? { current_etag: null, modified: null, author: null }
      : { current_etag: head.etag, modified: new Date(writtenMsOf(head)).toISOString(), author: authorInMetadata(head.metadata) }
  return fail('memory_conflict', { extra })
}

/** Returns the error for a call during which the store was reconfigured twice. */
export function movedAway(cause: Error): GatewayError {
  return fail('memory_store_failed', { message: 'The memory store was reconfigured while this call ran. Try again.', shouldRetry: true, cause })
}

/** Returns the error that a reader gets when the store failed. Other errors are returned unchanged. */
export function storeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? failureOf(error, false) : error
}

/** Returns the error that a writer gets when the store failed. It also says whether the write may have happened. Other errors are returned unchanged. */
export function writeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? failureOf(error, error.mayHaveHappened) : error
}

/**
 * Returns 503 for a failure that ends by itself, so that the caller can retry. Returns 502 for a failure that a person has to examine, and for a store that
 * does not answer.
 */
function failureOf(error: ObjectStoreError, isInDoubt: boolean): GatewayError {
  const cause = error
  switch (error.kind) {
    case 'overloaded':
      return fail('memory_store_busy', {
        ...(isInDoubt ? { message: 'The memory store is overloaded. Read the object before you write it again: an earlier try may have come through.' } : {}),
        retryAfterSeconds: 2,
        cause,
      })
    case 'denied':
    case 'no-bucket':
      // Callers of every role can read this message, so it does not name the cause. It points to the probe, which names the cause.
      return fail('memory_store_failed', {
        message:
          'The memory store cannot be used as it is configured. Nothing was changed. An admin learns the cause with PUT /v1/me/memory-store {"reprobe": true}.',
        shouldRetry: false,
        cause,
      })
    case 'small-pages':
      return fail('memory_store_failed', {
        message: 'The memory store sends its list in far smaller pages than the gateway asks for. The owner of the bucket has to let it send full pages.',
        shouldRetry: false,
        cause,
      })
    case 'full':
      return fail('memory_store_failed', {
        message:
          'The memory store itself is full. Nothing was changed. The owner of the bucket has to make room there; the quota of the gateway is another limit.',
        shouldRetry: false,
        cause,
      })
    default:
      return isInDoubt
        ? fail('memory_store_failed', {
            message: 'The memory store did not answer in time. Whether the write happened is not known: read the object before you write it again.',
            cause,
          })
        : fail('memory_store_failed', { cause })
  }
}
