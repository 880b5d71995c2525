import type { ProvenIdentity } from '../../orgs/accounts/people.ts'

/** The names of all supported identity providers. */
export const providerNames = ['google', 'github'] as const
export type ProviderName = (typeof providerNames)[number]

/** The secrets of one sign-in. They are made at its start and kept until its end. */
export interface SignInSecrets {
  readonly state: string
  /** PKCE code verifier. */
  readonly verifier: string
  /** The provider puts this value into the id token, if it makes one. */
  readonly nonce: string
}

/** An identity provider that the operator has configured. */
export interface IdentityProvider {
  readonly name: ProviderName
  /** The name for people, such as "Google". */
  readonly title: string
  /** Returns the address to which the browser is sent. */
  authorizationUrl(redirectUri: string, secrets: SignInSecrets): Promise<URL>
  /** Exchanges the code of the callback and returns the identity of the person. */
  identify(callbackUrl: URL, secrets: SignInSecrets): Promise<ProvenIdentity>
}

/** The supported providers by name; null when a provider is not configured. */
export type IdentityProviders = Readonly<Record<ProviderName, IdentityProvider | null>>

/** Returns the name as a ProviderName, or null when it is unknown. */
export function providerNameOf(text: string): ProviderName | null {
  return providerNames.find(name => name === text) ?? null
}
