/**
 * `memory://` URIs. The key comes after the two slashes, percent-encoded where necessary. A URI that ends with a slash, or that has no key, is a
 * folder. The content of a folder is the list of the keys below it. The functions are pure.
 */

const scheme = 'memory://'

export const memoryTemplate = `${scheme}{+key}`

/** The place that a URI names: an object, or a folder with the prefix of its keys. */
export type MemoryPlace = { readonly kind: 'object'; readonly key: string } | { readonly kind: 'folder'; readonly prefix: string }

/** Returns the place that a URI names. Returns null for another scheme and for a URI that cannot be decoded. */
export function memoryPlaceOf(uri: string): MemoryPlace | null {
  if (uri.slice(0, scheme.length).toLowerCase() !== scheme) return null
  try {
    const path = decodeURIComponent(uri.slice(scheme.length))
    return path === '' || path.endsWith('/') ? { kind: 'folder', prefix: path } : { kind: 'object', key: path }
  } catch {
    return null
  }
}

/** Returns the URI of a key, or of a prefix that ends with a slash. */
export function memoryUriOf(keyOrPrefix: string): string {
  return scheme + encodeURI(keyOrPrefix.toWellFormed())
}
