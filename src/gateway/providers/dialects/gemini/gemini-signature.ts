/**
 * Signatures of Gemini. Gemini signs its thoughts and calls, and requires the signatures back in the next turn. In the hub format, clients return two
 * fields unchanged: the signature of a thinking block, and the id of a call. Signatures are stored in these fields. Both fields name the provider
 * that signed, because a provider refuses the signatures of others.
 */

const blockMark = 'gemini:'
const idMark = '--sig--'

/** Returns a signature of Gemini as the `signature` of a thinking block. */
export function blockSignature(thoughtSignature: string): string {
  return blockMark + thoughtSignature
}

/** Returns Gemini's own signature from a thinking block, or null if another provider made it. */
export function thoughtSignatureOf(signature: unknown): string | null {
  return typeof signature === 'string' && signature.startsWith(blockMark) ? signature.slice(blockMark.length) : null
}

/** Returns whether Gemini made the signature. No other provider accepts such a signature. */
export function foreignSignature(signature: string): boolean {
  return signature.startsWith(blockMark)
}

/** Returns an id that contains the id of a call and its signature. It has only letters, digits, _ and -, so every API accepts it. */
export function signedCallId(id: string, thoughtSignature: string): string {
  return `${id}${idMark}${Buffer.from(thoughtSignature, 'utf8').toString('base64url')}`
}

/** Returns whether the id contains a signature. */
export function isSignedId(id: unknown): id is string {
  return typeof id === 'string' && id.includes(idMark)
}

/** Splits the id of a call into the plain id and the signature. */
export function readCallId(id: string): { readonly id: string; readonly thoughtSignature: string | null } {
  const at = id.indexOf(idMark)
  if (at === -1) return { id, thoughtSignature: null }
  return { id: id.slice(0, at), thoughtSignature: Buffer.from(id.slice(at + idMark.length), 'base64url').toString('utf8') }
}
