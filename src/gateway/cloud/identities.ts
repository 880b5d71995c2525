/** Makes the authorisers of identities, and keeps them: one for each identity, so that all calls share its keys or its token. */
import type { Clock } from '../../platform/clock.ts'
import type { Outbound } from '../../platform/outbound/outbound.ts'
import type { IdentityKind, Provider } from '../providers/provider.ts'
import { type Authoriser, CredentialsError } from './authorise.ts'
import { type AccessToken, BearerAuthoriser } from './bearer.ts'
import { clientSecretToken, type EntraProcess, entraSource, processEntraToken } from './entra.ts'
import type { GivenCredentials } from './given-credentials.ts'
import { processGoogleToken, serviceAccountToken } from './google.ts'
import { type Perishable, Renewed } from './renewed.ts'
import { type AwsKeys, SigV4Authoriser } from './sigv4.ts'
import { tokenWaitMs } from './token-request.ts'

/** The AWS keys of this process. Memory in S3 uses the same source. */
export type AwsKeySource = (options?: { readonly forceRefresh?: boolean }) => Promise<{
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly expiration?: Date
}>

export interface IdentitiesDeps {
  readonly clock: Clock
  readonly dial: Outbound['toProvider']
  /** The AWS keys of this process. Nothing is loaded before its first call. */
  readonly awsKeys: AwsKeySource
  readonly entra: EntraProcess
  /** Where service accounts get tokens: GOOGLE_TOKEN_URL. */
  readonly googleTokenUrl: string
  /** Where applications of Entra get tokens: ENTRA_LOGIN_URL. */
  readonly entraLoginUrl: string
}

/** How an attempt is authorised: by the identity of this process, or by credentials of an organisation. */
export type AttemptIdentity = 'process' | GivenCredentials

/** Maximum number of kept authorisers of organisations. One that was dropped gets a new token at its next call. */
const givenMax = 2_000

export class Identities {
  readonly #deps: IdentitiesDeps
  readonly #ofProviders = new WeakMap<Provider, Authoriser>()
  /** What this process identifies itself with. The authorisers of several providers share it. */
  #awsKeys: Renewed<AwsKeys> | null = null
  #googleTokens: Renewed<AccessToken> | null = null
  readonly #entraTokens = new Map<string, Renewed<AccessToken>>()
  /** Authorisers of organisations, the least recently used first. */
  readonly #given = new Map<string, Authoriser>()

  constructor(deps: IdentitiesDeps) {
    this.#deps = deps
  }

  /**
   * Returns the authoriser of an attempt at a provider. The identity of this process is used only with an address of the operator. Throws CredentialsError
   * when the provider takes no such credentials.
   */
  of(provider: Provider, identity: AttemptIdentity): Authoriser {
    const { identity: kind } = provider
    if (kind === undefined) throw new CredentialsError(`${provider.id} takes a key only`)
    if (identity !== 'process') return this.#ofGiven(provider, kind, identity)
    // An organisation that chooses the address must never get a signature of the operator's account.
    if (provider.userGiven === true || provider.isOrgPlace === true)
      throw new CredentialsError(`${provider.id} is not called with the identity of this gateway`)
    const known = this.#ofProviders.get(provider)
    if (known !== undefined) return known
    const made = this.#ofOwn(provider, kind)
    this.#ofProviders.set(provider, made)
    return made
  }

  #ofOwn(provider: Provider, kind: IdentityKind): Authoriser {
    const { clock, dial, entra, entraLoginUrl: loginUrl } = this.#deps
    switch (kind.kind) {
      case 'aws':
        this.#awsKeys ??= this.#renewed(isForced => this.#keysOfProcess(isForced))
        return new SigV4Authoriser({ service: kind.service, region: regionOf(provider), keys: this.#awsKeys, source: 'AWS chain' })
      case 'google':
        this.#googleTokens ??= this.#renewed(() => processGoogleToken({ clock }))
        return new BearerAuthoriser(this.#googleTokens, 'Google application default credentials')
      case 'entra': {
        const { scope } = kind
        const tokens = this.#entraTokens.get(scope) ?? this.#renewed(() => processEntraToken(entra, { clock, dial, loginUrl, scope }))
        this.#entraTokens.set(scope, tokens)
        return new BearerAuthoriser(tokens, entraSource(entra))
      }
    }
  }

  async #keysOfProcess(isForced: boolean): Promise<AwsKeys> {
    try {
      const { accessKeyId, secretAccessKey, sessionToken, expiration } = await this.#deps.awsKeys(isForced ? { forceRefresh: true } : undefined)
      const session = sessionToken === undefined ? {} : { sessionToken }
      return { accessKeyId, secretAccessKey, ...session, endMs: expiration?.getTime() ?? Number.POSITIVE_INFINITY }
    } catch (cause) {
      throw new CredentialsError('this gateway has no AWS identity: no source of the AWS chain answered', { cause })
    }
  }

  #ofGiven(provider: Provider, kind: IdentityKind, given: GivenCredentials): Authoriser {
    if (given.kind !== kind.kind) throw new CredentialsError(`${provider.id} takes other credentials`)
    const key = `${given.id} ${kind.kind === 'aws' ? `${kind.service} ${regionOf(provider)}` : kind.kind === 'entra' ? kind.scope : ''}`
    const known = this.#given.get(key)
    if (known !== undefined) {
      // The last entry is the most recently used.
      this.#given.delete(key)
      this.#given.set(key, known)
      return known
    }
    const made = this.#makeGiven(provider, kind, given)
    for (const oldest of this.#given.keys()) if (this.#given.size >= givenMax) this.#given.delete(oldest)
    this.#given.set(key, made)
    return made
  }

  #makeGiven(provider: Provider, kind: IdentityKind, given: GivenCredentials): Authoriser {
    const { clock, dial, googleTokenUrl, entraLoginUrl: loginUrl } = this.#deps
    switch (given.kind) {
      case 'aws': {
        const { accessKeyId, secretAccessKey, sessionToken } = given
        const session = sessionToken === null ? {} : { sessionToken: sessionToken.reveal() }
        const keys: AwsKeys = { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...session, endMs: Number.POSITIVE_INFINITY }
        const service = kind.kind === 'aws' ? kind.service : ''
        return new SigV4Authoriser({ service, region: regionOf(provider), keys: new Fixed(keys), source: 'AWS access key' })
      }
      case 'google':
        return new BearerAuthoriser(
          this.#renewed(() => serviceAccountToken(given, googleTokenUrl, { clock, dial })),
          'Google service account',
        )
      case 'entra': {
        const scope = kind.kind === 'entra' ? kind.scope : ''
        return new BearerAuthoriser(
          this.#renewed(() => clientSecretToken(given, { clock, dial, loginUrl, scope })),
          'Entra client secret',
        )
      }
    }
  }

  #renewed<T extends Perishable>(fetch: (isForced: boolean) => Promise<T>): Renewed<T> {
    const { clock } = this.#deps
    return new Renewed({
      clock,
      fetch,
      waitMaxMs: tokenWaitMs,
      tooSlow: () => new CredentialsError(`the credentials did not come within ${tokenWaitMs / 1000} s`),
    })
  }
}

/** Credentials without an end, and without others in their place. */
class Fixed<T> {
  readonly current: T

  constructor(value: T) {
    this.current = value
  }

  get(): T {
    return this.current
  }

  renew(): T {
    return this.current
  }
}

/** A provider whose region is missing is not configured, so no call comes here without one. */
const regionOf = ({ id, place }: Provider): string => {
  const region = place?.region
  if (region === undefined) throw new CredentialsError(`${id} has no region`)
  return region
}
