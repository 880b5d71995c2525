/** Finds the provider of a key by the shape of the key. */
import type { Secret } from '../../platform/security/secret.ts'
import type { Provider } from '../providers/provider.ts'

const expressions = new Map<string, RegExp>()
/** Maximum number of cached regular expressions. The catalog has one or two for each provider. */
const expressionsMax = 1_000

/** Returns the ids of the providers whose keys have this shape. Returns an empty list when the shape identifies no provider. */
export function ownersOf(key: Secret, providers: Iterable<Provider>): readonly string[] {
  const owners: string[] = []
  for (const { id, keyShape, keySign = keyShape } of providers) if (keySign !== null && expressionOf(keySign).test(key.reveal())) owners.push(id)
  return owners
}

function expressionOf(source: string): RegExp {
  const known = expressions.get(source)
  if (known !== undefined) return known
  if (expressions.size >= expressionsMax) expressions.clear()
  const made = new RegExp(source)
  expressions.set(source, made)
  return made
}
