import type { ProvenIdentity } from '../../orgs/accounts/people.ts'

/** The secrets of one sign-in. They are made at its start and kept until its end. */
export interface SignInSecrets {
  readonly state: string
  /** PKCE code verifier. */
  readonly verifier: string
  /** The provider puts this value into the id token, if it makes one. */
  readonly nonce: string
}

/** A person as a provider describes them. */
export interface Identified extends ProvenIdentity {
  /** The groups of the person, if the provider is an issuer that states them. */
  readonly groups?: readonly string[]
  /** False: the provider has not said that it verified the address, and the operator trusts it anyway. Such a sign-in proves no operator. */
  readonly isProven?: boolean
}

/** An identity provider that the operator has configured. */
export interface IdentityProvider {
  /** The name in addresses, such as "google". */
  readonly name: string
  /** The name for people, such as "Google". */
  readonly title: string
  /** A picture as a `data:` URL. */
  readonly icon?: string
  /** Returns the address to which the browser is sent. */
  authorizationUrl(redirectUri: string, secrets: SignInSecrets): Promise<URL>
  /** Exchanges the code of the callback and returns the identity of the person. */
  identify(callbackUrl: URL, secrets: SignInSecrets): Promise<Identified>
}

/** The providers by name, in the order in which the page lists them. Null: the gateway knows the provider, and it is not configured. */
export type IdentityProviders = ReadonlyMap<string, IdentityProvider | null>
