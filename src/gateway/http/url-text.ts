/** The one place that decides which URLs can be read. Behind it, decoding a path or a query of a request neither fails nor replaces anything. */

/**
 * Whether a URL or a part of one is well formed: every `%` has two hex digits, and the bytes are UTF-8. Else two names could be read as one.
 * Bytes without `%` are no matter of ours: Node's parser takes ASCII alone.
 */
export function isWellEncoded(text: string): boolean {
  if (!text.includes('%')) return true
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
