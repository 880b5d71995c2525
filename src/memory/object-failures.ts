/** What callers read when a memory call cannot be done. */
import { fail, type GatewayError } from '../platform/errors.ts'
import { type ObjectHead, ObjectStoreError } from './object-store.ts'
import { authorInMetadata, writtenMsOf } from './provenance.ts'

/** There is nothing to read. */
export function noObject(): GatewayError {
  return fail('not_found', { message: 'There is no memory object of that key.' })
}

/** The path lies outside what the credential may do. */
export function outsideScope(verb: string): GatewayError {
  return fail('forbidden', { message: `This credential may not ${verb} under that path. GET /v1/me/memory/paths lists its scopes.` })
}

/** The write lost its intent: it took too long, or the store was configured anew. */
export function lostIntent(): GatewayError {
  return fail('memory_store_failed', {
    message: 'This call took too long, or the store was configured anew while it ran. Read the object to see what is there.',
  })
}

/** 412 with what stands there now. */
export function conflictOf(head: ObjectHead | null): GatewayError {
  const extra =
    head === null
      ? { current_etag: null, modified: null, author: null }
      : { current_etag: head.etag, modified: new Date(writtenMsOf(head)).toISOString(), author: authorInMetadata(head.metadata) }
  return fail('memory_conflict', { extra })
}

/** What a caller sees of a store that failed. Anything that is not the store's doing passes. */
export function storeFailure(error: unknown): unknown {
  return error instanceof ObjectStoreError ? fail('memory_store_failed', { cause: error }) : error
}
