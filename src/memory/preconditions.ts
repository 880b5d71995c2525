import { fail } from '../platform/errors.ts'

/** What a write requires of the current object. */
export type Precondition =
  | { readonly kind: 'none' }
  /** The object must not exist. */
  | { readonly kind: 'absent' }
  /** There must be one, of any etag. */
  | { readonly kind: 'present' }
  /** There must be one with one of these strong etags, or `"sha256:<hex>"` of its content. */
  | { readonly kind: 'etag'; readonly etags: readonly string[] }

/** Most etags of one If-Match header. */
const etagsMax = 10
const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/

/** Whether a text can be an etag in a header, quotes included. */
export function isEntityTag(text: string): boolean {
  return entityTag.test(text)
}

/** Reads If-Match and If-None-Match of a write. A bare etag without quotes is taken as one. Throws `bad_request`. */
export function preconditionOf(ifMatch: string | undefined, ifNoneMatch: string | undefined): Precondition {
  if (ifMatch !== undefined && ifNoneMatch !== undefined) throw fail('bad_request', { message: 'Send If-Match or If-None-Match, not both.' })
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() !== '*') throw fail('bad_request', { message: 'If-None-Match of a write takes * only.' })
    return { kind: 'absent' }
  }
  if (ifMatch === undefined) return { kind: 'none' }
  if (ifMatch.trim() === '*') return { kind: 'present' }
  const etags = ifMatch
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
    .map(part => (part.includes('"') ? part : `"${part}"`))
  if (etags.length === 0 || etags.length > etagsMax || !etags.every(isEntityTag))
    throw fail('bad_request', { message: `If-Match takes 1 to ${etagsMax} quoted etags, or *.` })
  return { kind: 'etag', etags }
}

/** The current object: its etag, and the hash of its content when the gateway wrote it. */
export interface Current {
  readonly etag: string
  readonly sha256: string | null
}

/** Whether the precondition holds for the current object (null = no object). Weak etags never match. */
export function holds(precondition: Precondition, current: Current | null): boolean {
  switch (precondition.kind) {
    case 'none':
      return true
    case 'absent':
      return current === null
    case 'present':
      return current !== null
    case 'etag':
      return current !== null && precondition.etags.some(etag => etag === current.etag || (current.sha256 !== null && etag === `"sha256:${current.sha256}"`))
  }
}
