/** What an organisation gives to the people of its mail domains who sign in at an issuer. Decision 0887 gives the reasons. */
import type { Clock } from '../../../platform/clock.ts'
import type { Db } from '../../../platform/db/db.ts'
import { fail } from '../../../platform/errors.ts'
import { lockOrg } from '../members/member-queries.ts'
import { activeWorkspacesAmong, type GivenRole, type GroupRule, listRules, putRules, type RulesRow } from './joining-queries.ts'

/** An issuer that vouches for mail domains of an organisation. */
export interface ClaimedIssuer {
  readonly id: string
  /** The name for people. */
  readonly name: string
  /** A `data:` URL. */
  readonly icon: string
  /** Whether the operator has named a claim with groups. */
  readonly hasGroups: boolean
  readonly domains: readonly string[]
}

export interface SignInRulesDeps {
  readonly db: Db
  readonly clock: Clock
  /** Returns the issuers for which the operator has claimed domains for the organisation. */
  claimsOf(orgId: number): readonly ClaimedIssuer[]
}

/** An issuer and the rules of the organisation for it. */
export interface IssuerRules {
  readonly issuer: ClaimedIssuer
  readonly rules: Omit<RulesRow, 'issuer'>
}

export interface RulesParams {
  readonly defaultRole: GivenRole
  readonly groups: readonly GroupRule[]
}

/** The rules that apply until an owner sets others: who joins is a plain member, and groups give nothing. */
export const initialRules: Omit<RulesRow, 'issuer'> = { defaultRole: 'member', groups: [] }

/** The rules of organisations for sign-ins. */
export class SignInRules {
  readonly #deps: SignInRulesDeps
  constructor(deps: SignInRulesDeps) {
    this.#deps = deps
  }

  /** Returns the issuers of an organisation and its rules for each of them. */
  async list(orgId: number): Promise<IssuerRules[]> {
    const claims = this.#deps.claimsOf(orgId)
    if (claims.length === 0) return []
    const saved = new Map((await this.#deps.db.many(listRules, orgId)).map(row => [row.issuer, row]))
    return claims.map(issuer => ({ issuer, rules: saved.get(issuer.id) ?? initialRules }))
  }

  /**
   * Replaces the rules for an issuer. They apply from the next sign-in of each person on. Throws `not_found` for an issuer that vouches for no domain of the
   * organisation, and for a workspace that is not active there. Throws `bad_request` for groups of an issuer that states none, and for a group that is
   * there twice.
   */
  async set(orgId: number, issuerId: string, { defaultRole, groups }: RulesParams): Promise<IssuerRules> {
    const { db, clock, claimsOf } = this.#deps
    const issuer = claimsOf(orgId).find(({ id }) => id === issuerId)
    if (issuer === undefined)
      throw fail('not_found', { message: 'No such issuer vouches for a mail domain of this organisation. GET /me/sign-in-rules lists them.' })
    if (groups.length > 0 && !issuer.hasGroups)
      throw fail('bad_request', { message: `groups: the operator has named no claim of ${issuer.name} that states groups (claims.groups in SIGN_IN_FILE).` })
    const twice = groups.find(({ group }, index) => groups.findIndex(other => other.group === group) !== index)
    if (twice !== undefined) throw fail('bad_request', { message: 'groups: each group may be there once.' })
    const clean = groups.map(rule => ({ ...rule, workspaceIds: [...new Set(rule.workspaceIds)] }))
    await db.tx(async tx => {
      await tx.one(lockOrg, orgId)
      const named = [...new Set(clean.flatMap(({ workspaceIds }) => workspaceIds))]
      const active = new Set((await tx.many(activeWorkspacesAmong, orgId, named)).map(({ id }) => id))
      const stranger = named.find(id => !active.has(id))
      if (stranger !== undefined)
        throw fail('not_found', { message: `workspace_ids: there is no active workspace with the id ${stranger}. GET /me/workspaces lists them.` })
      await tx.exec(putRules, orgId, issuerId, defaultRole, JSON.stringify(clean), new Date(clock.nowMs()))
    })
    return { issuer, rules: { defaultRole, groups: clean } }
  }
}
