/** Maximum nesting of a message of a server. Definitions of real servers have less than 20 levels. */
const depthMax = 128

/** Returns true for a value with more than 128 levels of nesting. It uses no recursion, so no value can exhaust the stack. */
export function isTooDeep(value: unknown, most = depthMax): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > most) return true
    const next: unknown[] = []
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue
      for (const child of Object.values(item)) if (typeof child === 'object' && child !== null) next.push(child)
    }
    level = next
  }
  return false
}
