import type { Command } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import { CommandError, exitCodes, wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { count } from '../option-values.ts'
import type { PersonFlags } from '../person/person.ts'
import { addPersonFlags, personal } from '../person/person-command.ts'
import { detailLines, shortHashChars, type ToolDetail } from './definition-text.ts'
import { byServer, detailOf, everyPin, everyServer, type ServerRow, serverNamed, serverPath } from './tool-servers.ts'

interface PendingFlags extends PersonFlags {
  readonly limit?: number
}

interface ApproveFlags extends PersonFlags {
  readonly yes?: boolean
}

/** Definitions that `pending` prints, unless it is told a number. */
const shownByDefault = 20
/** Tools that one command names at most. */
const namedMax = 100
/** A tool, and what its hash must begin with. */
const nameWithHash = /^([^@]+)(?:@([0-9a-f]{8,64}))?$/

/** Adds the commands `brigade tools pending`, `approve` and `block`. */
export function addToolApprovalCommands(tools: Command): void {
  addPending(tools)
  addApprove(tools)
  addBlock(tools)
}

function addPending(tools: Command): void {
  const command = addPersonFlags(addClientFlags(tools.command('pending').description('definitions that wait for approval, and how changed ones differ')))
    .argument('[server]', 'slug or id; left out: all servers')
    .option('--limit <count>', `number of definitions (default: ${shownByDefault})`, count)
  addExamples(command, [
    ['brigade tools pending', 'of all servers'],
    ['brigade tools pending weather --limit 200', 'of one server'],
  ])
  command.action((named: string | undefined, _flags: PendingFlags, self: Command) => {
    const flags = self.optsWithGlobals<PendingFlags>()
    return personal(flags, true, async client => {
      const servers = named === undefined ? await everyServer(client) : [await serverNamed(client, named)]
      const { shown, more } = await waiting(client, servers, flags.limit ?? shownByDefault)
      if (flags.json === true) return printJson({ tools: shown })
      if (shown.length === 0) return printLine('No definition waits for approval.')
      for (const tool of shown) {
        for (const line of detailLines(tool)) printLine(line)
        if (tool.approvable) printLine(`  approve it: brigade tools approve ${plain(tool.name)}@${tool.hash.slice(0, shortHashChars)}`)
        printLine('')
      }
      if (more) printLine('More definitions wait: add --limit.')
    })
  })
}

/** Returns at most `limit` definitions that wait, and whether there are more. */
async function waiting(client: GatewayClient, servers: readonly ServerRow[], limit: number): Promise<{ shown: ToolDetail[]; more: boolean }> {
  const shown: ToolDetail[] = []
  for (const server of servers)
    for (const state of ['changed', 'pending'] as const) {
      if (server.tools[state] === 0) continue
      for await (const { name } of everyPin(client, server, state)) {
        if (shown.length === limit) return { shown, more: true }
        shown.push(await detailOf(client, server, name))
      }
    }
  return { shown, more: false }
}

function addApprove(tools: Command): void {
  const command = addPersonFlags(
    addClientFlags(tools.command('approve').description('approve definitions as their servers show them; asks after it has printed them')),
  )
    .argument('<tools...>', 'names, as brigade tools pending shows them; with @ and a hash: only this definition')
    .option('-y, --yes', 'do not print them and do not ask')
  addExamples(command, [
    ['brigade tools approve weather__forecast', 'prints the definition, and asks'],
    ['brigade tools approve weather__forecast@3fa9c1d2e4b5', 'exit code 6 when the server shows another definition by then'],
  ])
  command.action((words: readonly string[], _flags: ApproveFlags, self: Command) => {
    const flags = self.optsWithGlobals<ApproveFlags>()
    const hashes = hashesOf(words)
    return personal(flags, false, async client => {
      const approved: string[] = []
      for (const { server, names } of await byServer(client, [...hashes.keys()])) {
        const details: ToolDetail[] = []
        for (const name of names) details.push(checked(await detailOf(client, server, name), hashes.get(name)))
        if (flags.yes !== true) await ask(details)
        const json = { tools: details.map(({ name, hash }) => ({ name, hash })) }
        await client.json('POST', `${serverPath(server)}/tools/approve`, { json })
        approved.push(...names)
        if (flags.json !== true) for (const name of names) printLine(`approved ${plain(name)}`)
      }
      if (flags.json === true) printJson({ approved })
    })
  })
}

/** Returns the names with the hashes that they must have. Throws CommandError (2). */
function hashesOf(words: readonly string[]): ReadonlyMap<string, string | undefined> {
  if (words.length > namedMax) throw wrongUsage(`name at most ${namedMax} tools.`)
  return new Map(
    words.map(word => {
      const [, name, hash] = nameWithHash.exec(word) ?? []
      if (name === undefined) throw wrongUsage(`"${plain(word)}" is no name of a tool, or its hash has fewer than 8 digits.`)
      return [name, hash] as const
    }),
  )
}

function checked(tool: ToolDetail, hash: string | undefined): ToolDetail {
  if (hash === undefined || tool.hash.startsWith(hash)) return tool
  throw new CommandError(`the server shows another definition of ${plain(tool.name)} by now. brigade tools pending shows it.`, {
    exitCode: exitCodes.conflict,
    code: 'tool_changed',
  })
}

async function ask(details: readonly ToolDetail[]): Promise<void> {
  for (const tool of details) process.stderr.write(`${detailLines(tool).join('\n')}\n`)
  const { confirmed } = await import('../operator/confirmation.ts')
  if (!(await confirmed(`Approve ${details.length === 1 ? 'this definition' : `these ${details.length} definitions`}?`)))
    throw new CommandError('nothing more was approved.')
}

function addBlock(tools: Command): void {
  const command = addPersonFlags(addClientFlags(tools.command('block').description('block tools until somebody approves them again; their running calls end')))
    .argument('<tools...>', 'names')
    .option('--reason <text>', 'for people, one line')
  addExamples(command, [['brigade tools block weather__forecast --reason "wrong since Monday"', 'in every process, immediately']])
  command.action((words: readonly string[], _flags: PersonFlags, self: Command) => {
    const flags = self.optsWithGlobals<PersonFlags & { readonly reason?: string }>()
    if (words.length > namedMax) throw wrongUsage(`name at most ${namedMax} tools.`)
    return personal(flags, false, async client => {
      const blocked: string[] = []
      for (const { server, names } of await byServer(client, words)) {
        await client.json('POST', `${serverPath(server)}/tools/block`, { json: { tools: names, reason: flags.reason } })
        blocked.push(...names)
        if (flags.json !== true) for (const name of names) printLine(`blocked ${plain(name)}`)
      }
      if (flags.json === true) printJson({ blocked })
    })
  })
}
