import type { ModelTraits } from '../../dialect.ts'

/** The differences between generations of the models that use the messages format. */
export interface ClaudeAbilities {
  /** True: the model thinks by levels of effort instead of a token budget. */
  readonly adaptive: boolean
  /** True: the model accepts temperature, top_p and top_k. */
  readonly sampling: boolean
  /** True: the model accepts temperature and top_p in one request. */
  readonly temperatureWithTopP: boolean
  /** True: the model accepts a JSON schema for the reply. */
  readonly outputFormat: boolean
}

/**
 * Returns the abilities of a model, read from the version in its id, because the format has no call that reports them. For an id without a version, the
 * abilities of most current models are assumed. Parameters from the catalog win over the id, and so do its efforts if the id has no version.
 */
export function abilitiesOf(upstreamModel: string, traits: ModelTraits): ClaudeAbilities {
  const version = versionOf(upstreamModel)
  const known = traits.supportedParameters
  return {
    // The level `max` was introduced together with adaptive thinking.
    adaptive: version === null ? traits.efforts.includes('max') : version >= 406,
    sampling: known.length > 0 ? known.includes('temperature') : version === null || version < 407,
    temperatureWithTopP: version !== null && version < 401,
    outputFormat: version === null || version >= 405,
  }
}

/**
 * Returns major times 100 plus minor: 405 for `claude-opus-4-5-20251101`, 500 for `claude-fable-5`, 307 for `claude-3-7-sonnet-20250219`; null for a name
 * without a version.
 */
function versionOf(upstreamModel: string): number | null {
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])/.exec(upstreamModel)
  return found === null ? null : Number(found[1]) * 100 + Number(found[2] ?? 0)
}
