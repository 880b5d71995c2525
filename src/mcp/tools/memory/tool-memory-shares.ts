/** Tools for shares: they list the members of shares and change them. */
import { z } from 'zod'
import { fail } from '../../../platform/errors.ts'
import type { MemoryRows } from '../../mcp-rows.ts'
import { counted } from '../toolbox/text-lines.ts'
import { customTool, jsonOf, plainJson, type Tool, type ToolContext } from '../toolbox/tool.ts'
import { boundedPage, cursorArgument, nextCursor, overwrites, queryOf, readsOnly } from './text/tool-memory-parts.ts'

const shareShape = z.object({
  space: z.string().describe('Its objects are under shared/<space>/.'),
  owner: z.number().int().describe('User id.'),
  member_uids: z.array(z.number().int()).describe('User ids, without the owner.'),
  role: z.enum(['owner', 'member', 'manager']).describe('Yours. manager: you may change who is in it, and read nothing of it.'),
})
type Share = z.output<typeof shareShape>
const sharesShape = z.object({ shares: z.array(shareShape), next_cursor: nextCursor })

/** The tool memory_shares lists the open shares of the caller. */
export function memorySharesTool(row: MemoryRows['listShares']): Tool {
  return customTool({
    name: 'memory_shares',
    toolset: 'memory',
    title: 'Memory shares',
    description: 'The open shares that your user owns or belongs to, with their members by user id. Memory of a share is under shared/<space>/.',
    annotations: readsOnly,
    row,
    inputSchema: z.object({
      all: z.boolean().default(false).describe('Every open share of the organisation; for full keys of owners and admins.'),
      limit: z.number().int().min(1).max(200).default(50),
      cursor: cursorArgument,
    }),
    outputSchema: sharesShape,
    async run({ all, limit, cursor }, context) {
      const load = async (most: number) =>
        sharesShape.parse(
          plainJson(jsonOf(await context.invoker.call(row, { query: queryOf({ limit: most, cursor, ...(all ? { all } : {}) }) }, context.call))),
        )
      const page = await boundedPage(limit, load, ({ shares }) => shares)
      const more = page.next_cursor === null ? [] : [`There are more: call memory_shares again with cursor ${JSON.stringify(page.next_cursor)}.`]
      const text = page.shares.length === 0 ? 'There is no open share of yours.' : [...page.shares.map(lineOf), ...more].join('\n')
      return { text, structured: page }
    },
  })
}

type ShareRows = Pick<MemoryRows, 'createShare' | 'grantShare' | 'revokeShare' | 'retireShare'>

const inputSchema = z.object({
  action: z
    .enum(['create', 'grant', 'revoke', 'retire'])
    .describe('create: open a space that you own · grant, revoke: let one person in or out · retire: close it permanently, its name is never used again.'),
  space: z.string().min(1).describe('1 to 64 small letters, digits and hyphens.'),
  member_uids: z.array(z.number().int().min(1)).max(500).optional().describe('Only for create: who is let in, by user id.'),
  user_id: z.number().int().min(1).optional().describe('Only for grant and revoke: the person.'),
})
type Args = z.output<typeof inputSchema>

/** The tool memory_share opens and closes shares, and grants and withdraws access. */
export function memoryShareTool(rows: ShareRows): Tool {
  const outputSchema = shareShape.extend({ action: z.string() })
  return customTool({
    name: 'memory_share',
    toolset: 'memory',
    title: 'Change a memory share',
    description:
      'Open a share of memory for people of your organisation, let one of them in or out, or close it permanently. It gives people access: do it only when the user asked for it. Safe to repeat.',
    annotations: overwrites,
    row: rows.createShare,
    inputSchema,
    outputSchema,
    async run(args, context) {
      const share = shareShape.parse(plainJson(jsonOf(await changeShare(args, rows, context))))
      return { text: textOf(args, share), structured: { action: args.action, ...share } }
    },
  })
}

/** Calls the row for the action. Throws `bad_request` when an argument is missing, or when an argument belongs to another action. */
async function changeShare({ action, space, member_uids: members, user_id: user }: Args, rows: ShareRows, { invoker, call }: ToolContext): Promise<unknown> {
  const isOfOne = action === 'grant' || action === 'revoke'
  if (isOfOne !== (user !== undefined))
    throw fail('bad_request', {
      message: isOfOne ? `${action} needs user_id: the person.` : `${action} takes no user_id. To create with members give member_uids.`,
    })
  if (action !== 'create' && members !== undefined) throw fail('bad_request', { message: `${action} takes no member_uids; only create does.` })
  const path = { space, uid: String(user) }
  switch (action) {
    case 'create':
      return invoker.call(rows.createShare, { body: { space, member_uids: members ?? [] } }, call)
    case 'grant':
      return invoker.call(rows.grantShare, { path }, call)
    case 'revoke':
      return invoker.call(rows.revokeShare, { path }, call)
    case 'retire':
      return invoker.call(rows.retireShare, { path: { space } }, call)
  }
}

function textOf({ action, user_id: user }: Args, share: Share): string {
  const done = {
    create: `The share is open; its memory is under shared/${share.space}/.`,
    grant: `User ${user} may read and write it.`,
    revoke: `User ${user} may not read or write it any more.`,
    retire: 'The share is closed permanently; nobody can read or write it any more.',
  }[action]
  return `${done}\n${lineOf(share)}`
}

function lineOf({ space, owner, member_uids: members, role }: Share): string {
  const who = members.length === 0 ? 'nobody else' : `${counted(members.length, 'member')}: user ${members.join(', ')}`
  return `shared/${space}/  owner user ${owner}  ${who}  (you: ${role})`
}
