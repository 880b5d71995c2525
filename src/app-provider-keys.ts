/** Organisations' own keys at providers. */
import type { AppParts } from './app-services.ts'
import { ProviderKeys } from './gateway/byok/provider-keys.ts'

export function createProviderKeys({ db }: AppParts): ProviderKeys {
  return new ProviderKeys({ db })
}
