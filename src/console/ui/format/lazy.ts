/**
 * Returns a function that makes a value when it is first asked for, and keeps it. A formatter of Intl takes 5 to 20 ms to make, and a page that made all of
 * them while it starts would show its first rows later.
 */
export function lazy<T>(make: () => T): () => T {
  let kept: { readonly value: T } | undefined
  return () => {
    kept ??= { value: make() }
    return kept.value
  }
}
