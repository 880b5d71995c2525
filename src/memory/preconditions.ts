import { fail } from '../platform/errors.ts'

/** The state of the current object that a write requires. */
export type Precondition =
  | { readonly kind: 'none' }
  /** The object must not exist. */
  | { readonly kind: 'absent' }
  /** The object must exist, with any etag. */
  | { readonly kind: 'present' }
  /** The object must exist and have one of these strong etags, or `"sha256:<hex>"` of its content. */
  | { readonly kind: 'etag'; readonly etags: readonly string[] }

/** Maximum number of etags of one If-Match header. */
const etagsMax = 10
const entityTag = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/

/** Returns whether a text can be an etag in a header, quotes included. */
export function isEntityTag(text: string): boolean {
  return entityTag.test(text)
}

/** Reads If-Match and If-None-Match of a write. An etag without quotes is accepted. Throws `bad_request`. */
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

/** Returns whether the precondition holds for the current object. Null means that there is no object. Weak etags never match. */
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
