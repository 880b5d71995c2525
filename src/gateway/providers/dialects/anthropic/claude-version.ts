import type { ModelTraits } from '../../dialect.ts'

/** The features in which generations of Claude models differ. */
export interface ClaudeAbilities {
  /** True when the request sets the amount of thinking as a level of effort. Otherwise it sets a token budget. */
  readonly adaptive: boolean
  /** True when the model accepts temperature, top_p and top_k. */
  readonly sampling: boolean
  /** True when the model accepts temperature and top_p in one request. */
  readonly temperatureWithTopP: boolean
  /** True when the model accepts a JSON schema for the reply. */
  readonly outputFormat: boolean
}

/**
 * Returns the abilities of a model. They are read from the version in its id, because the format has no call that reports them. An id without a
 * version gets the abilities of most current models. Parameters from the catalog take precedence over the id. Efforts from the catalog do so only for
 * an id without a version.
 */
export function abilitiesOf(upstreamModel: string, traits: ModelTraits): ClaudeAbilities {
  const version = versionOf(upstreamModel)
  const known = traits.supportedParameters
  return {
    // Models with adaptive thinking have the level `max`, and older models do not.
    adaptive: version === null ? traits.efforts.includes('max') : version >= 406,
    sampling: known.length > 0 ? known.includes('temperature') : version === null || version < 407,
    temperatureWithTopP: version !== null && version < 401,
    outputFormat: version === null || version >= 405,
  }
}

/**
 * Returns the major version times 100 plus the minor version: 405 for `claude-opus-4-5-20251101`, 500 for `claude-fable-5`, 307 for
 * `claude-3-7-sonnet-20250219`. Returns null for a name without a version.
 */
function versionOf(upstreamModel: string): number | null {
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])/.exec(upstreamModel)
  return found === null ? null : Number(found[1]) * 100 + Number(found[2] ?? 0)
}
