import type { Command } from 'commander'
import type { MemoryShare } from '../../agents/toolkit/memory-client/memory-client-shapes.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { CommandError } from '../command-error.ts'
import { plain, printJson, printTable } from '../command-output.ts'
import { confirmed } from '../operator/confirmation.ts'
import { count } from '../option-values.ts'
import { withMemory } from './memory-access.ts'

/** Adds the commands `memory shares`, `share`, `grant`, `ungrant` and `retire`. A share is a space that a member opens to others of the organisation. */
export function addMemoryShareCommands(memory: Command): void {
  const list = addClientFlags(memory.command('shares').description('the shares that you own or are in')).option('--all', 'every share; for owners and admins')
  list.action((flags: ClientFlags & { readonly all?: boolean }) =>
    withMemory(flags, async client => {
      const shares: MemoryShare[] = []
      for await (const share of client.shares.list({ all: flags.all })) shares.push(share)
      if (flags.json === true) printJson({ shares })
      else if (shares.length === 0) process.stderr.write('No share is open to you. Open one: brigade memory share <name>\n')
      else printShares(shares)
    }),
  )
  addOpen(memory)
  addMembership(memory)
  addRetire(memory)
}

function printShares(shares: readonly MemoryShare[]): void {
  printTable(
    [{ head: 'SPACE' }, { head: 'OWNER', align: 'right' }, { head: 'YOU ARE' }, { head: 'MEMBERS' }],
    shares.map(share => [`shared/${share.space}/`, String(share.owner), share.role, share.member_uids.join(' ') || '-']),
  )
}

function printShare(share: MemoryShare, { json }: ClientFlags): void {
  if (json === true) printJson(share)
  else printShares([share])
}

function addOpen(memory: Command): void {
  const command = addClientFlags(memory.command('share').description('open a space of your own; of one that is yours already, add members'))
    .argument('<space>', 'small letters, digits and hyphens')
    .argument('[user-ids...]', 'who may read and write it')
  addExamples(command, [['brigade memory share launch 4 7', 'shared/launch/ for you, user 4 and user 7']])
  command.action((space: string, userIds: string[], flags: ClientFlags) =>
    withMemory(flags, async client => printShare(await client.shares.create(space, userIds.map(count)), flags)),
  )
}

function addMembership(memory: Command): void {
  for (const [name, what] of [
    ['grant', 'let a member into a share'],
    ['ungrant', 'remove a member from a share, from the next call on'],
  ] as const) {
    const command = addClientFlags(memory.command(name).description(what)).argument('<space>').argument('<user-id>', 'of GET /me/members', count)
    command.action((space: string, userId: number, flags: ClientFlags) =>
      withMemory(flags, async ({ shares }) => printShare(await (name === 'grant' ? shares.grant(space, userId) : shares.revoke(space, userId)), flags)),
    )
  }
}

function addRetire(memory: Command): void {
  const command = addClientFlags(memory.command('retire').description('close a share permanently; its name is never used again'))
    .argument('<space>')
    .option('-y, --yes', 'do not ask')
  command.action((space: string, flags: ClientFlags & { readonly yes?: boolean }) =>
    withMemory(flags, async ({ shares }) => {
      const question = `Close the share "${plain(space)}" permanently? Its objects stay in the bucket, where nobody can read them.`
      if (flags.yes !== true && !(await confirmed(question))) throw new CommandError('nothing was closed.')
      printShare(await shares.retire(space), flags)
    }),
  )
}
