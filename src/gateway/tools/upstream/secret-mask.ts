/** The text that replaces a secret. */
export const maskedSecret = '[secret of the server]'
/** A shorter value is no secret: masking it would damage texts that contain it by chance. */
const secretMinChars = 8

/** Returns the texts that a result must not contain: the value of the header, and the token after its scheme. */
export function secretsOf(header: { readonly value: string } | null): readonly string[] {
  if (header === null) return []
  const value = header.value.trim()
  const token = value.includes(' ') ? value.slice(value.indexOf(' ') + 1).trim() : ''
  // The longer one first, because it contains the other.
  return [value, token].filter(secret => secret.length >= secretMinChars)
}

/** Returns a text without the secrets. */
export function maskedText(text: string, secrets: readonly string[]): string {
  let shown = text
  for (const secret of secrets) if (shown.includes(secret)) shown = shown.replaceAll(secret, maskedSecret)
  return shown
}

/**
 * Returns a JSON value without the secrets, in its strings and in the names of its members. Returns the same object when it contains none. The depth of
 * the value must be bounded.
 */
export function masked<T>(value: T, secrets: readonly string[]): T {
  return secrets.length === 0 ? value : (copied(value, secrets) as T)
}

function copied(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return maskedText(value, secrets)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(item => copied(item, secrets))
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [maskedText(name, secrets), copied(item, secrets)]))
}
