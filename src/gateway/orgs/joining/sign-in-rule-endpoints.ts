import { z } from 'zod'
import { endpointOf } from '../../../platform/endpoint.ts'
import { int4Max } from '../../../platform/values/row-id.ts'
import type { IssuerRules, SignInRules } from './sign-in-rules.ts'

const row = endpointOf<{ signInRules: SignInRules }>()

const ok = z.literal(true)
const rulesMax = 200
const workspacesOfRuleMax = 50
const groupCharsMax = 256
const smallBodyMaxBytes = 256 * 1024
const role = z.enum(['member', 'admin'])
const group = z.strictObject({
  group: z.string().min(1).max(groupCharsMax).describe('The group, exactly as the issuer states it.'),
  role: role.nullable().default(null).describe('The role of its people; null: the groups decide no role. Nobody becomes an owner by signing in.'),
  workspace_ids: z.array(z.int().min(1).max(int4Max)).max(workspacesOfRuleMax).default([]).describe('The workspaces of its people.'),
})
const issuer = z.object({
  id: z.string(),
  name: z.string(),
  icon: z.string().describe('A data: URL.'),
  domains: z.array(z.string()).describe('The mail domains that the operator has claimed for this organisation.'),
  states_groups: z.boolean().describe('Whether the operator has named a claim with groups.'),
  default_role: role.describe('The role of a person who joins because of the mail domain.'),
  groups: z.array(group),
})

const viewOf = ({ issuer: { id, name, icon, domains, hasGroups }, rules }: IssuerRules): z.output<typeof issuer> => ({
  id,
  name,
  icon,
  domains: [...domains],
  states_groups: hasGroups,
  default_role: rules.defaultRole,
  groups: rules.groups.map(each => ({ group: each.group, role: each.role, workspace_ids: [...each.workspaceIds] })),
})

export const signInRuleEndpoints = {
  signInRules: row({
    at: 'GET /me/sign-in-rules',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'The issuers at which people of the mail domains of this organisation sign in, and what such a sign-in gives them.',
    input: {},
    output: z.object({ issuers: z.array(issuer) }),
    errors: [],
    handle: async ({ signInRules }, _input, call) => ({ issuers: (await signInRules.list(call.principal.orgId)).map(viewOf) }),
  }),

  setSignInRules: row({
    at: 'PUT /me/sign-in-rules/{provider}',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'people',
    summary: 'Replaces what sign-ins at an issuer give: the role of who joins by mail domain, and roles and workspaces by group, at each sign-in.',
    input: {
      path: z.object({ provider: z.string().describe('The id of the issuer.') }),
      body: z.strictObject({ default_role: role, groups: z.array(group).max(rulesMax).default([]) }),
      bodyLimitBytes: smallBodyMaxBytes,
    },
    output: issuer.extend({ ok }),
    errors: ['not_found', 'bad_request'],
    async handle({ signInRules }, { path, body }, call) {
      const groups = body.groups.map(each => ({ group: each.group, role: each.role, workspaceIds: each.workspace_ids }))
      return { ok: true as const, ...viewOf(await signInRules.set(call.principal.orgId, path.provider, { defaultRole: body.default_role, groups })) }
    },
  }),
}
