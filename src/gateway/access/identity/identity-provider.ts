import type { ProvenIdentity } from '../../orgs/accounts/people.ts'

/** The ways to sign in; there are no others. */
export const providerNames = ['google', 'github'] as const
export type ProviderName = (typeof providerNames)[number]

/** What one sign-in carries from its start to its end. */
export interface SignInSecrets {
  readonly state: string
  /** PKCE code verifier. */
  readonly verifier: string
  /** Bound into the id token, where the provider makes one. */
  readonly nonce: string
}

/** An identity provider that the operator has configured. */
export interface IdentityProvider {
  readonly name: ProviderName
  /** For people: "Google". */
  readonly title: string
  /** Where to send the browser. */
  authorizationUrl(redirectUri: string, secrets: SignInSecrets): Promise<URL>
  /** Exchanges the code of the callback and says who it is. */
  identify(callbackUrl: URL, secrets: SignInSecrets): Promise<ProvenIdentity>
}

/** The configured providers by name; null is known but not configured. */
export type IdentityProviders = Readonly<Record<ProviderName, IdentityProvider | null>>

/** The provider's name when it is one of ours. */
export function providerNameOf(text: string): ProviderName | null {
  return providerNames.find(name => name === text) ?? null
}
