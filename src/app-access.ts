/** Sign-in, as services of rows. */
import type { AppParts } from './app-services.ts'
import { Arrivals } from './gateway/access/arrivals.ts'
import { CliLogin } from './gateway/access/cli-login.ts'
import { createGithub } from './gateway/access/github.ts'
import { createGoogle } from './gateway/access/google.ts'
import type { IdentityProviders } from './gateway/access/identity-provider.ts'
import { InvitationDesk } from './gateway/access/invitation-desk.ts'
import { providerFetch } from './gateway/access/provider-fetch.ts'
import { SignIn } from './gateway/access/sign-in.ts'
import { SignInLinks } from './gateway/access/sign-in-links.ts'
import type { Invitations } from './gateway/orgs/invitations.ts'
import { People } from './gateway/orgs/people.ts'

const sweepEveryMs = 60_000

export function accessServices(parts: AppParts, invitations: Invitations) {
  const { db, clock, ids, log, config, sealer, sessions, audit, keys, jobs, baseUrl } = parts
  const people = new People({ db, clock })
  const arrivals = new Arrivals({ db, sessions, audit })
  const signIn = new SignIn({ db, clock, ids, log, sealer, providers: identityProviders(parts), people, arrivals, baseUrl })
  const signInLinks = new SignInLinks({ db, clock, ids, people, arrivals, audit, ttlSeconds: config.SIGN_IN_LINK_TTL_S, baseUrl })
  jobs.every('access.sweep', sweepEveryMs, async () => {
    await sessions.sweep()
    await signIn.sweep()
    await signInLinks.sweep()
  })
  const cliLogin = new CliLogin({ clock, ids, keys, audit })
  const invitationDesk = new InvitationDesk({ arrivals, sessions, invitations, audit })
  return { sessions, people, arrivals, invitationDesk, signIn, signInLinks, cliLogin, ownPages: { baseUrl, origins: config.CONSOLE_ORIGINS } }
}

/** Those with both a client id and a client secret. */
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
