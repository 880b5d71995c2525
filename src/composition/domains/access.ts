/** Constructs the sign-in services. */

import { CliLogin } from '../../gateway/access/cli-login.ts'
import { createGithub } from '../../gateway/access/identity/github.ts'
import { createGoogle } from '../../gateway/access/identity/google.ts'
import type { IdentityProviders } from '../../gateway/access/identity/identity-provider.ts'
import { providerFetch } from '../../gateway/access/identity/provider-fetch.ts'
import { InvitationPages } from '../../gateway/access/pages/invitation-pages.ts'
import { SignIn } from '../../gateway/access/sign-in/sign-in.ts'
import { SignInCompletion } from '../../gateway/access/sign-in/sign-in-completion.ts'
import { SignInLinks } from '../../gateway/access/sign-in/sign-in-links.ts'
import { People } from '../../gateway/orgs/accounts/people.ts'
import type { Invitations } from '../../gateway/orgs/members/invitations.ts'
import type { AppParts } from '../parts.ts'

const sweepEveryMs = 60_000

export function accessServices(parts: AppParts, invitations: Invitations) {
  const { db, clock, ids, log, config, sealer, sessions, audit, keys, jobs, baseUrl } = parts
  const people = new People({ db, clock })
  const signInCompletion = new SignInCompletion({ db, sessions, audit })
  const signIn = new SignIn({ db, clock, ids, log, sealer, providers: identityProviders(parts), people, signInCompletion, baseUrl })
  const signInLinks = new SignInLinks({ db, clock, ids, people, signInCompletion, audit, ttlSeconds: config.SIGN_IN_LINK_TTL_S, baseUrl })
  const cliLogin = new CliLogin({ db, clock, ids, keys, audit })
  jobs.every('access.sweep', sweepEveryMs, async () => {
    await sessions.sweep()
    await signIn.sweep()
    await signInLinks.sweep()
    await cliLogin.sweep()
  })
  const invitationPages = new InvitationPages({ signInCompletion, sessions, invitations, audit })
  return { sessions, people, signInCompletion, invitationPages, signIn, signInLinks, cliLogin, ownPages: { baseUrl, origins: config.CONSOLE_ORIGINS } }
}

/** Returns the identity providers that have both a client id and a client secret. */
function identityProviders({ config, outbound, clock }: AppParts): IdentityProviders {
  const fetch = providerFetch(outbound)
  const google = credentialsOf(config.GOOGLE_CLIENT_ID, config.GOOGLE_CLIENT_SECRET)
  const github = credentialsOf(config.GITHUB_CLIENT_ID, config.GITHUB_CLIENT_SECRET)
  return {
    google: google === null ? null : createGoogle({ ...google, issuer: config.GOOGLE_ISSUER, fetch, clock }),
    github: github === null ? null : createGithub({ ...github, siteUrl: config.GITHUB_BASE_URL, apiUrl: config.GITHUB_API_URL, fetch }),
  }
}

function credentialsOf(clientId: string | null, secret: { reveal(): string } | null): { clientId: string; clientSecret: string } | null {
  return clientId === null || secret === null ? null : { clientId, clientSecret: secret.reveal() }
}
