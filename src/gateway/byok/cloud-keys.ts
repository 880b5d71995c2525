/** What an organisation says about its own account at a cloud: the values of the address, credentials, and the names of its models. */
import { fail } from '../../platform/errors.ts'
import { isObject } from '../../platform/values/json.ts'
import { AddressError, filledAddress, missingNames } from '../cloud/address-template.ts'
import { type GivenCredentials, GivenCredentialsError, readCredentials } from '../cloud/given-credentials.ts'
import type { Place, PlaceName, Provider } from '../providers/provider.ts'

/**
 * Returns the provider at the place of an organisation, or the provider itself when the organisation names no place and the operator has set one. Throws
 * `bad_request` for a place that is incomplete or wrong. The place is whole: no value of the operator completes it.
 */
export function providerAt(provider: Provider, place: Place): Provider {
  const { address, id, name } = provider
  const given = Object.keys(place) as PlaceName[]
  const needed = (address?.names ?? []).join(', ')
  if (given.length === 0) {
    if (address !== undefined && provider.baseUrl === '')
      throw fail('bad_request', { message: `${name} needs values of your account: send "values" with ${needed}.` })
    return provider
  }
  if (address === undefined) throw fail('bad_request', { message: `${name} has one address for everybody, so it takes no values.` })
  const foreign = given.find(each => !address.names.includes(each))
  if (foreign !== undefined) throw fail('bad_request', { message: `${name} takes no value ${foreign}; expected ${needed}.` })
  const lacking = missingNames(address, place)
  if (lacking.length > 0) throw fail('bad_request', { message: `values lacks ${lacking.join(', ')}: ${name} needs ${needed}.` })
  try {
    return placed(provider, filledAddress(address, place), place)
  } catch (cause) {
    if (cause instanceof AddressError) throw fail('bad_request', { message: `The values give no address of ${id}: ${cause.message}.`, cause })
    throw cause
  }
}

/** Returns the provider at a saved place. Null when the row of the provider has changed, so that the place does not fit any more. */
export function providerAtSaved(provider: Provider, place: Place): Provider | null {
  try {
    return providerAt(provider, place)
  } catch {
    return null
  }
}

/** The place of an organisation proves no residency, whatever the operator says of its own. */
function placed(provider: Provider, baseUrl: string, place: Place): Provider {
  const { platformKey: _key, usesIdentity: _identity, missing: _missing, ...row } = provider
  return {
    ...row,
    baseUrl,
    place,
    residency: provider.residency === 'india' ? 'global' : provider.residency,
    platformKey: null,
    configured: false,
    isOrgPlace: true,
  }
}

/** Returns checked credentials for the provider. Throws `bad_request` when it takes none, and `bad_key` when a field is wrong. */
export function credentialsFor(provider: Provider, given: unknown): GivenCredentials {
  const { identity, name } = provider
  if (identity === undefined) throw fail('bad_request', { message: `${name} takes a key. Send it as "key".` })
  try {
    return readCredentials(given, identity.kind)
  } catch (cause) {
    if (cause instanceof GivenCredentialsError) throw fail('bad_key', { message: `${cause.message} It was sent nowhere.` })
    throw cause
  }
}

/** Returns the credentials in a saved text. Null for a text that is a key. Throws for credentials that cannot be read. */
export function savedCredentials(provider: Provider, text: string): GivenCredentials | null {
  if (provider.identity === undefined || !text.startsWith('{')) return null
  const value: unknown = JSON.parse(text)
  return isObject(value) ? readCredentials(value, provider.identity.kind) : null
}
