import type { Clock } from '../../../platform/clock.ts'
import type { Config } from '../../../platform/config.ts'
import { fail } from '../../../platform/errors.ts'
import type { Outbound } from '../../../platform/outbound/outbound.ts'
import { cleanEmail } from '../../../platform/values/email-address.ts'
import { mailDomainOf } from '../../orgs/members/mail-domain.ts'
import { createGithub } from './github.ts'
import type { Identified, IdentityProvider, IdentityProviders } from './identity-provider.ts'
import type { IssuerSettings } from './issuer-file.ts'
import { type Claims, claimOf, createOpenidIssuer, textClaim } from './openid-issuer.ts'
import { providerFetch } from './provider-fetch.ts'

export interface ProviderDeps {
  readonly config: Config
  readonly outbound: Outbound
  readonly clock: Clock
}

const googleSkewSeconds = 30
/** Maximum number of groups that an issuer may state, and of characters of one. */
const groupsMax = 2_000
const groupCharsMax = 256

/** Returns the identity providers: Google and GitHub with client id and secret, and the issuers of the operator's file in its order. */
export function configuredProviders({ config, outbound, clock }: ProviderDeps, issuers: readonly IssuerSettings[]): IdentityProviders {
  const google = credentialsOf(config.GOOGLE_CLIENT_ID, config.GOOGLE_CLIENT_SECRET)
  const github = credentialsOf(config.GITHUB_CLIENT_ID, config.GITHUB_CLIENT_SECRET)
  const fetch = providerFetch(outbound)
  return new Map<string, IdentityProvider | null>([
    ['google', google === null ? null : createOpenidIssuer({ ...googleOptions(config.GOOGLE_ISSUER), ...google, fetch, clock })],
    ['github', github === null ? null : createGithub({ ...github, siteUrl: config.GITHUB_BASE_URL, apiUrl: config.GITHUB_API_URL, fetch })],
    ...issuers.map((entry): [string, IdentityProvider] => [entry.id, issuerOf(entry, { outbound, clock })]),
  ])
}

const googleOptions = (issuer: string) =>
  ({
    name: 'google',
    title: 'Google',
    issuer,
    scopes: ['openid', 'email', 'profile'],
    prompt: 'select_account',
    clockSkewSeconds: googleSkewSeconds,
    wanted: [],
    identityOf: (claims: Claims & { readonly sub: string }): Identified => ({
      provider: 'google',
      subject: claims.sub,
      verifiedEmail: isTrue(claims['email_verified']) && typeof claims['email'] === 'string' ? claims['email'] : null,
      name: textClaim(claims['name']),
      avatarUrl: textClaim(claims['picture']),
    }),
  }) as const

function issuerOf(entry: IssuerSettings, { outbound, clock }: Pick<ProviderDeps, 'outbound' | 'clock'>): IdentityProvider {
  const { id, name, icon, issuer, client_id: clientId, secret, claims } = entry
  return createOpenidIssuer({
    name: id,
    title: name,
    icon,
    issuer,
    clientId,
    clientSecret: secret.reveal(),
    scopes: [...new Set(['openid', ...entry.scopes])],
    clockSkewSeconds: entry.clock_skew_seconds,
    fetch: providerFetch(outbound, new URL(issuer).origin),
    clock,
    wanted: [claims.email, ...(claims.groups === null ? [] : [claims.groups])],
    identityOf: stated => identityOf(entry, stated),
  })
}

/**
 * Returns the identity of a person at an issuer of the operator's file. The issuer and its `sub` name the account, so another issuer under the same id
 * gives no access to accounts of the first one. Throws `bad_request` for an address that is not verified or for which the issuer does not vouch.
 */
function identityOf(entry: IssuerSettings, claims: Claims & { readonly sub: string }): Identified {
  const { name: title, issuer } = entry
  const email = cleanEmail(textClaim(claimOf(claims, entry.claims.email)) ?? '')
  if (email === null || !isVerified(entry, claims['email_verified']))
    throw fail('bad_request', { message: `${title} states no verified e-mail address of yours, so nobody was signed in. Ask the people who run ${title}.` })
  if (entry.addresses === 'domains' && !Object.hasOwn(entry.domains, mailDomainOf(email)))
    throw fail('bad_request', { message: `${title} does not vouch for addresses of ${mailDomainOf(email)} here. Sign in another way at /auth.` })
  return {
    provider: `oidc ${issuer}`,
    subject: claims.sub,
    verifiedEmail: email,
    isProven: isTrue(claims['email_verified']),
    name: textClaim(claimOf(claims, entry.claims.name)),
    avatarUrl: textClaim(claims['picture']),
    groups: entry.claims.groups === null ? [] : groupsOf(title, claims, entry.claims.groups),
  }
}

const isTrue = (value: unknown): boolean => value === true || value === 'true'

/** An issuer that makes all addresses itself may leave the claim out. A claim that denies the address is never ignored. */
function isVerified({ email_verified: demanded }: IssuerSettings, stated: unknown): boolean {
  return isTrue(stated) || (demanded === 'assumed' && stated === undefined)
}

/** Returns the groups. No claim means no groups. Throws `bad_request` for a claim that is no list of texts, or that the issuer has left out because it is long. */
function groupsOf(title: string, claims: Claims, name: string): readonly string[] {
  const stated = claimOf(claims, name)
  const list = typeof stated === 'string' ? [stated] : (stated ?? [])
  const elsewhere = claimOf(claims, '_claim_names')
  const isLeftOut = stated === undefined && typeof elsewhere === 'object' && elsewhere !== null && Object.hasOwn(elsewhere, name)
  const isList = Array.isArray(list) && list.length <= groupsMax && list.every(each => typeof each === 'string' && each.length <= groupCharsMax)
  if (isLeftOut || !isList)
    throw fail('bad_request', {
      message: `The claim "${name}" of ${title} is no list of at most ${groupsMax} groups, so your rights are not known and nobody was signed in. Ask the operator.`,
    })
  return [...new Set(list as readonly string[])]
}

function credentialsOf(clientId: string | null, secret: { reveal(): string } | null): { clientId: string; clientSecret: string } | null {
  return clientId === null || secret === null ? null : { clientId, clientSecret: secret.reveal() }
}
