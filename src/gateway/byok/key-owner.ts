/** Whose a provider key is, as far as its shape tells. */
import type { Secret } from '../../platform/security/secret.ts'
import type { Provider } from '../providers/provider.ts'

const expressions = new Map<string, RegExp>()
/** Most expressions that are kept; a catalog has one or two a provider. */
const expressionsMax = 1_000

/** Ids of the providers that alone have keys of this shape; empty: its shape tells nothing. */
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
