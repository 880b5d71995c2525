/** What callers read when a memory call cannot be done. */
import { fail, type GatewayError } from '../../platform/errors.ts'
import { authorInMetadata, writtenMsOf } from '../provenance.ts'
import { type ObjectHead, ObjectStoreError } from '../stores/object-store.ts'

/** There is nothing to read. */
export function noObject(): GatewayError {
  return fail('not_found', { message: 'There is no memory object of that key.' })
}

/** The credential may not use this path. */
export function outsideScope(verb: string): GatewayError {
  return fail('forbidden', { message: `This credential may not ${verb} under that path. GET /v1/me/memory/paths lists its scopes.` })
}

/** An appended entry cannot be changed. */
export function entryStands(): GatewayError {
  return fail('forbidden', {
    message: 'That is the name of an appended entry: entries are made with POST /v1/me/memory/append and never written again. Append a new one, or delete it.',
  })
}

/** The write lost its intent: it took too long, or the store was reconfigured. */
export function lostIntent(): GatewayError {
  return fail('memory_store_failed', {
    message: 'This call took too long, or the store was reconfigured while it ran. Read the object to see what is there.',
  })
}

/** 412 with the etag of the current object. */
export function conflictOf(head: ObjectHead | null): GatewayError {
  const extra =
    head === null
      ? { current_etag: null, modified: null, author: null }
      : { current_etag: head.etag, modified: new Date(writtenMsOf(head)).toISOString(), author: authorInMetadata(head.metadata) }
  return fail('memory_conflict', { extra })
}

/** The store was reconfigured twice while one call tried to reach it. */
export function movedAway(cause: Error): GatewayError {
  return fail('memory_store_failed', { message: 'The memory store was reconfigured while this call ran. Try again.', shouldRetry: true, cause })
}

/** What a reader sees of a store that failed. Anything that is not the store's doing passes. */
export function storeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? failureOf(error, false) : error
}

/** What a writer sees: also whether the write may have happened all the same. */
export function writeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? failureOf(error, error.mayHaveHappened) : error
}

/** 503 is what passes by waiting; 502 is everything that somebody has to look at, and a store that is silent. */
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
      // Callers of every role read this one, so it names no cause; the probe that it points to does.
      return fail('memory_store_failed', {
        message:
          'The memory store cannot be used as it is configured. Nothing was changed. An admin learns the cause with PUT /v1/me/memory-store {"reprobe": true}.',
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
