/** Makes text that people typed harmless for the headers, bodies and HTML of a mail. */

/** Control characters, line and paragraph separators, and characters that reverse or hide text. */
const notPlain = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu

/** Returns one line of at most `lengthMax` characters. It contains no character that could end a header or imitate another line. */
export function oneLine(text: string, lengthMax = 200): string {
  const line = text.replace(notPlain, ' ').replace(/\s+/g, ' ').trim()
  const characters = [...line]
  return characters.length <= lengthMax ? line : `${characters.slice(0, lengthMax - 1).join('')}…`
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Escapes text for HTML elements and quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character] ?? '')
}

const addressShape = /^[^\s@<>()[\]\\,;:"\p{Cc}\p{Cf}]{1,64}@[^\s@<>()[\]\\,;:"\p{Cc}\p{Cf}]{1,253}$/u

/**
 * Returns whether the text is one plain mail address: no display name, no list, no quoting, and no character with a meaning in a header.
 */
export function isMailAddress(text: string): boolean {
  return text.length <= 254 && addressShape.test(text) && !text.startsWith('-') && !text.includes('..')
}
