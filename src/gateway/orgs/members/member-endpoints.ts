import { z } from 'zod'
import { cursorCharsMax } from '../../../platform/db/list-cursor.ts'
import { endpointOf } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import type { Principal } from '../../../platform/security/principal.ts'
import { searchText, textOf } from '../../../platform/values/list-params.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { reader, signedIn } from '../accounts/signed-in.ts'
import { type InvitationResult, type Invitations, invitedTogetherMax, type OwnInvitation, type Pending, roleOfName } from './invitations.ts'
import { memberSorts } from './member-list-queries.ts'
import type { ListedMember, MemberFigures, Members } from './members.ts'

const row = endpointOf<{ members: Members; invitations: Invitations }>()

const role = z.enum(['member', 'admin', 'owner'])
const roleInput = z.string().describe('member, admin or owner.')
const capability = z.enum(['usage:org:view', 'cost:org:view', 'audit:view'])
const member = z.object({
  id: z.int().describe('The user id.'),
  uid: z.int().describe('The same as id.'),
  email: z.string(),
  name: z.string().nullable(),
  role,
  capabilities: z.array(capability).describe('What a plain member may see beyond the role. Owners and admins may see all of it.'),
})
const listedMember = member.extend({
  monthly_budget_inr: z.number().nullable().describe('Monthly limit in rupees; null: none, or not for the caller to see.'),
  spend_month_inr: z.number().nullable().describe('Usage value of the running month (IST) in rupees. Null: not for the caller to see. People see their own.'),
})
const pending = z.object({ id: z.int(), email: z.string(), role, created_at: z.string() })
const invitation = pending.extend({ org: z.object({ id: z.int(), name: z.string(), kind: z.enum(['personal', 'team']) }), invited_by: z.string() })
const ok = z.literal(true)
const result = z.object({
  email: z.string().describe('The address of the request.'),
  invitation: pending.nullable().describe('Null: the address was not invited.'),
  error: z.object({ code: z.string(), message: z.string() }).nullable().describe('Why it was not, as POST /me/members answers.'),
})

const memberPath = z.object({ id: z.string().describe('User id.') })
const invitationPath = z.object({ id: z.string().describe('Invitation id.') })
/** Returns the id in the path. A text that is not an id becomes 0, which matches nobody, so the reply is that of an unknown id. */
const idOf = (path: { id: string }): number => rowId(path.id) ?? 0

const resultView = ({ email, invitation, error }: InvitationResult): z.output<typeof result> => ({
  email,
  invitation: invitation === undefined ? null : pendingView(invitation),
  error: error === undefined ? null : { code: error.code, message: error.message },
})

/** Maximum length of an address of a request. Longer texts are not addresses. */
const emailMax = 320
const pageDefault = 50
const pageMax = 200

const memberView = ({ userId, email, name, role, capabilities }: ListedMember): z.output<typeof member> => ({
  id: userId,
  uid: userId,
  email,
  name,
  role,
  capabilities: [...capabilities],
})
const figuresView = (found: MemberFigures | undefined): Pick<z.output<typeof listedMember>, 'monthly_budget_inr' | 'spend_month_inr'> => ({
  monthly_budget_inr: found === undefined || found.capUinr === null ? null : inrFromUinr(found.capUinr),
  spend_month_inr: found === undefined ? null : inrFromUinr(found.spentUinr),
})
/** Returns whether the caller sees what this member spends. An agent sees nobody's figures. */
const seesSpendOf = ({ kind, userId, role, capabilities }: Principal, memberId: number): boolean =>
  kind === 'session' && (memberId === userId || role === 'owner' || role === 'admin' || capabilities.includes('cost:org:view'))
const pendingView = ({ id, email, role, createdAt }: Pending): z.output<typeof pending> => ({ id, email, role, created_at: createdAt.toISOString() })
const invitationView = (found: OwnInvitation): z.output<typeof invitation> => ({
  ...pendingView(found),
  org: { id: found.orgId, name: found.orgName, kind: found.orgKind },
  invited_by: found.invitedBy,
})

export const memberEndpoints = {
  listMembers: row({
    at: 'GET /me/members',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'The members of the organisation, and on the first page the open invitations.',
    input: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(pageMax).optional().describe(`1 to ${pageMax}; default ${pageDefault} with a cursor, else ${pageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
        q: searchText('A part of the name or of the mail address, in upper or lower case, or an id.'),
        state: z.enum(['active', 'invited']).optional().describe('active: members only. invited: open invitations only. Left out: both.'),
        role: role.optional(),
        sort: z.enum(memberSorts).optional().describe('The order of the members: created (oldest account first, the default), name or email.'),
      }),
    },
    output: z.object({ members: z.array(listedMember), pending: z.array(pending), next_cursor: z.string().nullable() }),
    errors: ['bad_request'],
    async handle({ members, invitations }, { query }, call) {
      const { orgId } = call.principal
      const { q, state, role, sort, cursor } = query
      const isFirst = cursor === undefined
      const text = textOf(q)
      const limit = query.limit ?? (isFirst ? pageMax : pageDefault)
      const [page, pending] = await Promise.all([
        state === 'invited' ? { members: [], nextCursor: null } : members.list(orgId, { text, role, sort, cursor, limit }),
        isFirst && state !== 'active' ? invitations.pending(orgId, { text, role }) : [],
      ])
      const seen = page.members.map(({ userId }) => userId).filter(id => seesSpendOf(call.principal, id))
      const figures = await members.figures(orgId, seen)
      return {
        members: page.members.map(found => ({ ...memberView(found), ...figuresView(figures.get(found.userId)) })),
        pending: pending.map(pendingView),
        next_cursor: page.nextCursor,
      }
    },
  }),

  inviteMember: row({
    at: 'POST /me/members',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Invites an address with a role and mails it. Only an owner invites an owner.',
    input: { body: z.strictObject({ email: z.string(), role: roleInput }) },
    output: pending,
    status: 201,
    errors: ['bad_email', 'bad_role', 'personal_org', 'already_member', 'already_invited', 'member_cap'],
    handle: async ({ invitations }, { body }, call) => pendingView(await invitations.invite(signedIn(call.principal), body)),
  }),

  inviteMembers: row({
    at: 'POST /me/members/bulk',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: `Invites up to ${invitedTogetherMax} addresses with one role and mails them, with a result for each. Safe to repeat. Only an owner invites an owner.`,
    input: { body: z.strictObject({ emails: z.array(z.string().max(emailMax)).min(1).max(invitedTogetherMax), role: roleInput }) },
    output: z.object({
      ok,
      invited: z.int().describe('Number of addresses that this call has invited.'),
      results: z.array(result).describe('One for each address, in the order of the request.'),
    }),
    errors: ['bad_role', 'personal_org', 'bad_request', 'rate_limit_exceeded'],
    async handle({ invitations }, { body }, call) {
      const results = await invitations.inviteAll(signedIn(call.principal), body.emails, body.role)
      return { ok: true, invited: results.filter(each => each.invitation !== undefined).length, results: results.map(resultView) }
    },
  }),

  updateMember: row({
    at: 'PATCH /me/members/{id}',
    auth: 'session',
    access: { role: 'owner' },
    tag: 'people',
    summary: 'Changes the role or the capabilities of a member. The change applies from the next call on.',
    input: { path: memberPath, body: z.strictObject({ role: roleInput.optional(), capabilities: z.array(capability).max(3).optional() }) },
    output: member.extend({ ok }),
    errors: ['bad_role', 'not_found', 'last_owner'],
    async handle({ members }, { path, body }, call) {
      if (body.role === undefined && body.capabilities === undefined) throw fail('bad_request', { message: 'Send role or capabilities.' })
      const changed = await members.change(signedIn(call.principal), idOf(path), {
        ...(body.role === undefined ? {} : { role: roleOfName(body.role) }),
        ...(body.capabilities === undefined ? {} : { capabilities: [...new Set(body.capabilities)] }),
      })
      return { ok: true, ...memberView(changed) }
    },
  }),

  removeMember: row({
    at: 'DELETE /me/members/{id}',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: "Leaves the organisation (the own id) or removes a member. The person's keys and sessions here end immediately.",
    input: { path: memberPath },
    output: z.object({ ok, id: z.int() }),
    errors: ['forbidden', 'not_found', 'last_owner'],
    async handle({ members }, { path }, call) {
      await members.remove(signedIn(call.principal), idOf(path))
      return { ok: true, id: idOf(path) }
    },
  }),

  invitationLink: row({
    at: 'POST /me/members/pending/{id}/link',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'A link to hand over to the invited person, as the mail has it. It holds no secret: who opens it signs in with the invited address.',
    input: { path: invitationPath },
    output: pending.extend({ ok, link: z.string() }),
    errors: ['forbidden', 'not_found'],
    async handle({ invitations }, { path }, call) {
      const { invitation, link } = await invitations.linkOf(signedIn(call.principal), idOf(path))
      return { ok: true, ...pendingView(invitation), link }
    },
  }),

  resendInvitation: row({
    at: 'POST /me/members/pending/{id}/resend',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Mails an open invitation once more, at most once an hour to one address.',
    input: { path: invitationPath },
    output: pending.extend({ ok }),
    errors: ['forbidden', 'not_found', 'already_invited'],
    handle: async ({ invitations }, { path }, call) => ({ ok: true, ...pendingView(await invitations.resend(signedIn(call.principal), idOf(path))) }),
  }),

  withdrawInvitation: row({
    at: 'DELETE /me/members/pending/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Takes an open invitation back.',
    input: { path: invitationPath },
    output: z.object({ ok, id: z.int() }),
    errors: ['not_found'],
    async handle({ invitations }, { path }, call) {
      await invitations.withdraw(call.principal.orgId, idOf(path))
      return { ok: true, id: idOf(path) }
    },
  }),

  listInvitations: row({
    at: 'GET /me/invitations',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'The open invitations to the address of the signed-in person. An agent has none.',
    input: {},
    output: z.object({ invitations: z.array(invitation) }),
    errors: [],
    async handle({ invitations }, _input, call) {
      const principal = reader(call.principal)
      return { invitations: principal.kind === 'agent' ? [] : (await invitations.ofPerson(principal.userId)).map(invitationView) }
    },
  }),

  acceptInvitation: row({
    at: 'POST /me/invitations/{id}/accept',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Joins the organisation with the invited role. The session stays where it is; POST /me/orgs/switch moves it.',
    input: { path: invitationPath },
    output: invitation.extend({ ok }),
    errors: ['not_found', 'member_cap'],
    async handle({ invitations }, { path }, call) {
      return { ok: true, ...invitationView(await invitations.accept(signedIn(call.principal), idOf(path))) }
    },
  }),

  declineInvitation: row({
    at: 'POST /me/invitations/{id}/decline',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'Declines an invitation permanently.',
    input: { path: invitationPath },
    output: z.object({ ok, id: z.int() }),
    errors: ['not_found'],
    async handle({ invitations }, { path }, call) {
      await invitations.decline(signedIn(call.principal), idOf(path))
      return { ok: true, id: idOf(path) }
    },
  }),
}
