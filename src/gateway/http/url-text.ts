/** Checks the encoding of URLs. After this check, decoding the path or query of a request neither fails nor replaces characters. */

/**
 * Returns true when a URL or a part of one is well formed: every `%` has two hex digits, and the decoded bytes are UTF-8. Without this check, two different
 * names could decode to the same text. Bytes without `%` need no check, because the parser of Node.js accepts only ASCII.
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
