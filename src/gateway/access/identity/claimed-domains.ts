/** The mail domains that the operator has claimed for organisations. Decision 0886 gives the reasons. */
import type { ClaimedIssuer } from '../../orgs/joining/sign-in-rules.ts'
import { mailDomainOf } from '../../orgs/members/mail-domain.ts'
import type { IssuerSettings } from './issuer-file.ts'

/** Returns a function that finds the organisation of a verified address at an issuer. The organisation is null when none has claimed the domain. */
export function claimedFor(issuers: readonly IssuerSettings[]): (issuer: string, email: string) => { readonly orgId: number | null } | undefined {
  const byId = new Map(issuers.map(({ id, domains }) => [id, new Map(Object.entries(domains))]))
  return (issuer, email) => {
    const domains = byId.get(issuer)
    return domains === undefined ? undefined : { orgId: domains.get(mailDomainOf(email))?.org ?? null }
  }
}

/** Returns a function that lists the issuers that vouch for domains of an organisation. */
export function claimsOf(issuers: readonly IssuerSettings[]): (orgId: number) => readonly ClaimedIssuer[] {
  return orgId =>
    issuers.flatMap(({ id, name, icon, claims, domains }) => {
      const own = Object.keys(domains).filter(domain => domains[domain]?.org === orgId)
      return own.length === 0 ? [] : [{ id, name, icon, hasGroups: claims.groups !== null, domains: own }]
    })
}
