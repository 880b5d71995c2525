/** Converts namespaces and keys of a LangGraph store to keys of shared memory, and back. The functions are pure. */

/** The place of an item: the labels of its namespace, and its key. */
export interface ItemPlace {
  readonly namespace: readonly string[]
  readonly key: string
}

/** The suffix of every item's name. A label contains no dot, so the suffix distinguishes an item from a namespace of the same name. */
const itemEnding = '.json'

/** Returns the memory key of an item. Throws for a text with an unpaired surrogate, because a key cannot contain one. */
export function keyOfItem(root: string, { namespace, key }: ItemPlace): string {
  return `${prefixOfNamespace(root, namespace)}${escaped(key, '.')}${itemEnding}`
}

/** Returns the common beginning of all memory keys of a namespace and of the namespaces below it. */
export function prefixOfNamespace(root: string, namespace: readonly string[]): string {
  return [root, ...namespace.map(label => escaped(label, '')), ''].join('/')
}

/** Returns the item of a memory key. Returns null when the key belongs to something else. */
export function itemOfKey(root: string, memoryKey: string): ItemPlace | null {
  if (!memoryKey.startsWith(`${root}/`) || !memoryKey.endsWith(itemEnding)) return null
  try {
    const parts = memoryKey
      .slice(root.length + 1, -itemEnding.length)
      .split('/')
      .map(decodeURIComponent)
    const key = parts.pop() ?? ''
    // Another program may have written a key that decodes to an item but is not the key of that item.
    return keyOfItem(root, { namespace: parts, key }) === memoryKey ? { namespace: parts, key } : null
  } catch {
    return null
  }
}

/**
 * Percent-encodes every character except letters, digits, `-`, `_` and the `allowed` characters. Letters of every script stay readable where memory
 * keys allow them. Invisible characters are escaped, because memory keys may not contain them.
 */
function escaped(text: string, allowed: string): string {
  const readable = text.replace(/[^\p{L}\p{M}\p{N}_-]|[\p{Default_Ignorable_Code_Point}\u{13441}\u{13442}\u{16fe4}]/gu, char =>
    allowed.includes(char) ? char : hex(char),
  )
  // Keys are in Unicode normal form C. A text that is not in this form, or that loses the form next to an escape, is escaped completely.
  return readable.normalize('NFC') === readable ? readable : text.replace(/[^A-Za-z0-9_-]/gu, hex)
}

function hex(char: string): string {
  if (/\p{Cs}/u.test(char)) throw new Error('A namespace or key has half a surrogate pair, which cannot be stored.')
  return [...new TextEncoder().encode(char)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
