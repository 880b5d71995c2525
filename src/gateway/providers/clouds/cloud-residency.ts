/**
 * Decides whether a route in a cloud may count as a route in India. A profile may be served by another region than the one that is called, so a route
 * with such an id is never resident in India, whatever its provider's row states. Decision 0871 gives the reasons.
 */
import type { Provider, Residency } from '../provider.ts'

/** The regions of AWS and the locations of Vertex in India. */
const indianRegions: ReadonlySet<string> = new Set(['ap-south-1', 'ap-south-2', 'asia-south1', 'asia-south2'])

/** The kinds of an ARN that are served in its region only. Profiles and routers may be served in others. */
const localKinds: ReadonlySet<string> = new Set(['foundation-model', 'provisioned-model', 'custom-model', 'custom-model-deployment', 'imported-model'])

/** The prefixes of profiles that are known, beside those of two letters (`us.`, `eu.`). */
const wideWords: ReadonlySet<string> = new Set(['global', 'apac', 'emea', 'amer', 'latam', 'us-gov'])

/** The first part of the ids of models on Bedrock. An id with something before it is a profile. */
const vendors =
  /^(?:ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|stability|twelvelabs|writer|zai)$/

/**
 * Returns the residency of a route: the stated one, or `global` in place of `india` when another region may serve the route. `stated` is the
 * residency of the route's row, or of its provider.
 */
export function routeResidency(stated: Residency, provider: Pick<Provider, 'baseUrl' | 'cloud'>, upstreamModel: string): Residency {
  if (stated !== 'india') return stated
  return whyNotIndia(provider, upstreamModel) === null ? 'india' : 'global'
}

/** Returns why a route cannot be resident in India, as the end of a sentence about the route. Null when nothing contradicts it. */
export function whyNotIndia({ baseUrl, cloud }: Pick<Provider, 'baseUrl' | 'cloud'>, upstreamModel: string): string | null {
  const location = locationOf(baseUrl)
  if (location !== null && !indianRegions.has(location)) return `calls ${location}, which is not in India`
  if (cloud === 'vertex' && location === null) return 'names no location in its address'
  if ((cloud === 'bedrock-invoke' || bedrockHost.test(baseUrl)) && isCrossRegion(upstreamModel))
    return `names "${upstreamModel}", which other regions may serve`
  return null
}

const bedrockHost = /^https:\/\/bedrock[a-z-]*\.([a-z0-9-]+)\.(?:amazonaws\.com|api\.aws)(?:[:/]|$)/

/** Returns the region or location in the address of a cloud. Null for any other address. */
function locationOf(baseUrl: string): string | null {
  return bedrockHost.exec(baseUrl)?.[1] ?? /\/projects\/[^/]+\/locations\/([a-z0-9-]+)(?:\/|$)/.exec(baseUrl)?.[1] ?? null
}

/** Returns whether regions other than the called one may serve the id. An ARN of an unknown kind counts as such. */
function isCrossRegion(upstreamModel: string): boolean {
  if (upstreamModel.startsWith('arn:')) {
    const [, , , region = '', , resource = ''] = upstreamModel.split(':')
    const [kind = '', id = ''] = resource.split('/')
    return !(localKinds.has(kind) && indianRegions.has(region)) || isCrossRegion(id)
  }
  const [first = '', second] = upstreamModel.split('.')
  if (second === undefined || vendors.test(first)) return false
  return first.length === 2 || wideWords.has(first) || vendors.test(second)
}
