import { z } from 'zod'
import { cursorCharsMax } from '../../../platform/db/list-cursor.ts'
import { endpointOf } from '../../../platform/endpoint.ts'
import { searchText, textOf } from '../../../platform/values/list-params.ts'
import { inrFromUinr } from '../../../platform/values/money.ts'
import { rowId } from '../../../platform/values/row-id.ts'
import { workspaceSorts } from './workspace-list.ts'
import { type Workspace, type Workspaces, workspacesPageMax } from './workspaces.ts'

const row = endpointOf<{ workspaces: Workspaces }>()

const membersMax = 1_000
const workspace = z.object({
  id: z.int(),
  name: z.string(),
  monthly_budget_inr: z.number().nullable().describe('Monthly limit in rupees; null = none.'),
  spend_month_inr: z.number().describe('Usage value of the running month (IST) in rupees.'),
  archived: z.boolean(),
  keys: z.int().describe('Keys of the workspace that are not revoked, counted up to 1,000.'),
  member_uids: z.array(z.int()).describe('The team, by user id. Keys that are bound to the workspace belong to it too.'),
})
const name = z.string().describe('1 to 100 characters, unique among the active workspaces in any case of letters.')
const params = {
  monthly_budget_inr: z.number().min(0).nullish().describe('Rupees a month (IST); null: no limit.'),
  member_uids: z.array(z.number()).max(membersMax).optional().describe('The whole team; all of them members of the organisation.'),
}
const path = z.object({ id: z.string().describe('Workspace id.') })
/** Returns the id in the path. A text that is not an id becomes 0, which matches no workspace. */
const idOf = (given: { id: string }): number => rowId(given.id) ?? 0

const viewOf = (found: Workspace): z.output<typeof workspace> => ({
  id: found.id,
  name: found.name,
  monthly_budget_inr: found.capUinr === null ? null : inrFromUinr(found.capUinr),
  spend_month_inr: inrFromUinr(found.spentUinr),
  archived: found.isArchived,
  keys: found.keyCount,
  member_uids: [...found.memberUids],
})

export const workspaceEndpoints = {
  listWorkspaces: row({
    at: 'GET /me/workspaces',
    auth: 'session',
    access: {},
    tag: 'people',
    summary: 'The workspaces of the organisation with their budgets and spend: active ones first, then archived ones.',
    input: {
      query: z.object({
        q: searchText('A part of the name, in upper or lower case, or an id.'),
        state: z.enum(['active', 'archived']).optional().describe('Left out: both.'),
        sort: z.enum(workspaceSorts).optional().describe('created (oldest first, the default) or name. Active ones come first in each order.'),
        limit: z.coerce.number().int().min(1).max(workspacesPageMax).default(workspacesPageMax).describe(`Workspaces of a page, at most ${workspacesPageMax}.`),
        cursor: z.string().max(cursorCharsMax).optional().describe('next_cursor of the page before, in the same order.'),
      }),
    },
    output: z.object({
      workspaces: z.array(workspace),
      next_cursor: z.string().nullable().describe('null: this was the last page. Large teams make a page shorter.'),
    }),
    errors: ['bad_request'],
    async handle({ workspaces }, { query: { q, ...rest } }, call) {
      const page = await workspaces.list(call.principal.orgId, { ...rest, text: textOf(q) })
      return { workspaces: page.workspaces.map(viewOf), next_cursor: page.nextCursor }
    },
  }),

  createWorkspace: row({
    at: 'POST /me/workspaces',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Makes a workspace. Keys are bound to it when they are made.',
    input: { body: z.strictObject({ name, ...params }) },
    output: workspace,
    status: 201,
    errors: ['bad_name', 'duplicate_workspace', 'cap', 'not_found'],
    handle: async ({ workspaces }, { body }, call) =>
      viewOf(
        await workspaces.create(call.principal.orgId, { name: body.name, monthlyBudgetInr: body.monthly_budget_inr, memberUids: uidsOf(body.member_uids) }),
      ),
  }),

  updateWorkspace: row({
    at: 'PATCH /me/workspaces/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Renames a workspace, sets its monthly budget in rupees (IST month) or its team. What is left out stays.',
    input: { path, body: z.strictObject({ name: name.optional(), ...params }) },
    output: workspace.extend({ ok: z.literal(true) }),
    errors: ['bad_name', 'duplicate_workspace', 'not_found'],
    async handle({ workspaces }, input, call) {
      const { name, monthly_budget_inr: monthlyBudgetInr, member_uids } = input.body
      const changed = await workspaces.change(call.principal.orgId, idOf(input.path), { name, monthlyBudgetInr, memberUids: uidsOf(member_uids) })
      return { ok: true, ...viewOf(changed) }
    },
  }),

  archiveWorkspace: row({
    at: 'DELETE /me/workspaces/{id}',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Archives a workspace: its name is free and no new key is bound to it. Its keys continue to work within its budget; usage stays.',
    input: { path },
    output: workspace.extend({ ok: z.literal(true) }),
    errors: ['not_found'],
    handle: async ({ workspaces }, input, call) => ({ ok: true, ...viewOf(await workspaces.archive(call.principal.orgId, idOf(input.path))) }),
  }),

  restoreWorkspace: row({
    at: 'POST /me/workspaces/{id}/restore',
    auth: 'session',
    access: { role: 'admin' },
    tag: 'people',
    summary: 'Makes an archived workspace active again, with its keys, team, budget and usage. If its name is taken by now, send another one.',
    input: { path, body: z.strictObject({ name: name.optional().describe('A new name. Left out: the one that it had.') }).optional() },
    output: workspace.extend({ ok: z.literal(true) }),
    errors: ['bad_name', 'duplicate_workspace', 'cap', 'not_found'],
    handle: async ({ workspaces }, input, call) => ({
      ok: true,
      ...viewOf(await workspaces.restore(call.principal.orgId, idOf(input.path), input.body?.name)),
    }),
  }),
}

/** A number that is not an id becomes 0, which matches no user, so the service refuses it as an unknown member. */
function uidsOf(given: readonly number[] | undefined): number[] | undefined {
  return given?.map(uid => rowId(uid) ?? 0)
}
