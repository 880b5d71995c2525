/** The patterns of the rule `allowed_tools`: a public name of a tool, or `slug__*` for every tool of a server. Pure. */

/** Matches a pattern of `allowed_tools`. */
export const toolPattern = /^[a-z][a-z0-9-]{0,15}__(?:\*|[A-Za-z0-9_-]{1,62})$/
/** Maximum length of a pattern. A public name is not longer. */
export const toolPatternMaxChars = 64

/** Returns the first of these patterns that allows a tool which `bounds` does not allow. Undefined when there is none. */
export function patternBeyond(patterns: readonly string[], bounds: readonly string[] | null): string | undefined {
  return patterns.find(pattern => bounds === null || !(bounds.includes(pattern) || bounds.includes(serverPatternOf(pattern))))
}

/** Returns the pattern for all tools of the server of a name. The name of a server has no `_`, so the first `__` ends it. */
export const serverPatternOf = (publicName: string): string => `${publicName.slice(0, publicName.indexOf('__'))}__*`
