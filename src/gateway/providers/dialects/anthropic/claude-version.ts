import type { ModelTraits } from '../../dialect.ts'

/** What differs between generations of the models that speak the messages format. */
export interface ClaudeAbilities {
  /** Thinks by levels of effort instead of a budget of tokens. */
  readonly adaptive: boolean
  /** Takes temperature, top_p and top_k. */
  readonly sampling: boolean
  /** Takes temperature and top_p in one request. */
  readonly temperatureWithTopP: boolean
  /** Takes a JSON schema for the reply. */
  readonly outputFormat: boolean
}

/**
 * What a model can do, read from the version in its id, because the format itself has no way to ask. An id that says nothing is taken for a
 * model of today that takes what most of them take; the catalog's efforts and parameters win over the id where they are known.
 */
export function abilitiesOf(upstreamModel: string, traits: ModelTraits): ClaudeAbilities {
  const version = versionOf(upstreamModel)
  const known = traits.supportedParameters
  return {
    // The level `max` came with the models that think adaptively.
    adaptive: version === null ? traits.efforts.includes('max') : version >= 406,
    sampling: known.length > 0 ? known.includes('temperature') : version === null || version < 407,
    temperatureWithTopP: version !== null && version < 401,
    outputFormat: version === null || version >= 405,
  }
}

/**
 * Major times 100 plus minor: 405 for `claude-opus-4-5-20251101`, 500 for `claude-fable-5`, 307 for `claude-3-7-sonnet-20250219`; null for a name
 * without a version.
 */
function versionOf(upstreamModel: string): number | null {
  const found = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])/.exec(upstreamModel)
  return found === null ? null : Number(found[1]) * 100 + Number(found[2] ?? 0)
}
