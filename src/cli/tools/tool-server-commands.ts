import { type Command, Option } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import { CommandError } from '../command-error.ts'
import { plain, printJson, printLine, printTable, rupees } from '../command-output.ts'
import { amount, count } from '../option-values.ts'
import type { PersonFlags } from '../person/person.ts'
import { addPersonFlags, personal } from '../person/person-command.ts'
import { addCredentialFlags, type CredentialFlags, credentialOf } from './server-credential.ts'
import { everyServer, type ServerRow, serverNamed, serverPath } from './tool-servers.ts'

interface AddFlags extends PersonFlags, CredentialFlags {
  readonly name?: string
  readonly slug?: string
  readonly residency?: string
  readonly priceInr?: number
  readonly timeoutMs?: number
}

interface SyncReply {
  readonly server: ServerRow
  readonly sync: { readonly new: number; readonly changed: number; readonly gone: number; readonly error: string | null; readonly detail: string | null }
}

/** Adds the commands `brigade tools servers …`. */
export function addToolServerCommands(tools: Command): void {
  const servers = addPersonFlags(addClientFlags(tools.command('servers').description('MCP servers of the organisation: list, add, sync, on, off, remove')))
  addExamples(servers, [
    ['brigade tools servers', 'each with the number of its tools in each state'],
    ['brigade tools servers add https://tools.example.com/mcp --name Weather', 'its tools wait for approval'],
    ['brigade tools servers off weather', 'running calls of its tools end'],
  ])
  servers.action((flags: PersonFlags) => personal(flags, true, client => printServers(client, flags)))
  addAdd(servers)
  addSync(servers)
  addTurn(servers, 'on')
  addTurn(servers, 'off')
  addRemove(servers)
}

async function printServers(client: GatewayClient, { json }: PersonFlags): Promise<void> {
  const rows = await everyServer(client)
  if (json === true) return printJson({ servers: rows })
  if (rows.length === 0) return printLine('There is no MCP server. Register one: brigade tools servers add <url>.')
  const prices = rupees(rows.map(row => row.price_inr_per_call))
  const right = (head: string) => ({ head, align: 'right' }) as const
  printTable(
    [{ head: 'SERVER' }, { head: 'STATE' }, right('APPROVED'), right('WAITING'), right('BLOCKED'), right('PRICE ₹'), { head: 'LAST READ' }, { head: 'URL' }],
    rows.map((row, at) => [
      row.slug,
      row.state,
      String(row.tools.approved),
      String(row.tools.pending + row.tools.changed),
      String(row.tools.blocked),
      prices[at] ?? '',
      row.last_error ?? row.last_sync_at ?? '-',
      row.url,
    ]),
  )
}

function addAdd(servers: Command): void {
  const command = addPersonFlags(addClientFlags(servers.command('add').description('register an MCP server, after Brigade has read its tools')))
    .argument('<url>', 'address of its MCP endpoint (streamable HTTP)')
    .option('--name <name>', 'for people (default: its host)')
    .option('--slug <slug>', 'the first part of the names of its tools; it cannot be changed (default: made from the name)')
  addCredentialFlags(command)
    .addOption(new Option('--residency <residency>', 'where the server keeps data, as you state it (default: global)').choices(['india', 'global']))
    .option('--price-inr <inr>', 'what budgets are charged for a call of one of its tools (default: 0)', amount)
    .option('--timeout-ms <ms>', 'how long a call may take', count)
  addExamples(command, [
    ['brigade tools servers add https://tools.example.com/mcp --name Weather', 'a server without a credential'],
    ['brigade tools servers add https://crm.example.com/mcp --header-name Authorization --header-from crm.header', 'the file holds "Bearer" and the token'],
    [
      'brigade tools servers add https://crm.example.com/mcp --client-credentials --client-id brigade --client-secret-from crm.secret',
      'tokens of the organisation',
    ],
    [
      'brigade tools servers add https://crm.example.com/mcp --per-person --client-id brigade --client-secret-from crm.secret',
      'each person connects in the console',
    ],
  ])
  command.action((url: string, _flags: AddFlags, self: Command) => {
    const flags = self.optsWithGlobals<AddFlags>()
    return personal(flags, false, async client => {
      const auth = await credentialOf(flags)
      const json = {
        url,
        name: flags.name ?? hostOf(url),
        slug: flags.slug,
        ...(auth === null ? {} : { auth }),
        residency: flags.residency,
        price_inr_per_call: flags.priceInr,
        timeout_ms: flags.timeoutMs,
      }
      const made = await client.json<SyncReply>('POST', '/me/tool-servers', { json })
      if (flags.json === true) return printJson(made)
      if (flags.perPerson === true)
        return printLine(
          `registered ${plain(made.server.slug)}. Each person connects at ${client.baseUrl}/console/tools?tab=connections. Its tools are read after the first owner or admin has connected.`,
        )
      printLine(`registered ${plain(made.server.slug)}: ${made.sync.new} tools wait for approval. brigade tools pending ${plain(made.server.slug)} shows them.`)
    })
  })
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname : url).slice(0, 100)

function addSync(servers: Command): void {
  const command = addPersonFlags(addClientFlags(servers.command('sync').description('read the tools of a server now'))).argument('<server>', 'slug or id')
  addExamples(command, [['brigade tools servers sync weather', 'exit code 1: the server could not be read']])
  command.action((named: string, _flags: PersonFlags, self: Command) => {
    const flags = self.optsWithGlobals<PersonFlags>()
    return personal(flags, false, async client => {
      const server = await serverNamed(client, named)
      const { sync, ...rest } = await client.json<SyncReply>('POST', `${serverPath(server)}/sync`)
      if (sync.error !== null)
        throw new CommandError(`${plain(server.slug)} could not be read: ${plain(sync.detail ?? sync.error)}.`, { code: sync.error, evidence: { sync } })
      if (flags.json === true) printJson({ ...rest, sync })
      else printLine(`${plain(server.slug)}: ${sync.new} new, ${sync.changed} changed, ${sync.gone} gone`)
    })
  })
}

function addTurn(servers: Command, state: 'on' | 'off'): void {
  const what = state === 'on' ? 'switch a server on again, with its approvals' : 'switch a server off: its tools leave every list, and their running calls end'
  const command = addPersonFlags(addClientFlags(servers.command(state).description(what))).argument('<server>', 'slug or id')
  addExamples(command, [[`brigade tools servers ${state} weather`, state === 'on' ? 'its approved tools can be called' : 'its approvals stay']])
  command.action((named: string, _flags: PersonFlags, self: Command) => {
    const flags = self.optsWithGlobals<PersonFlags>()
    return personal(flags, false, async client => {
      const reply = await client.json<{ server: ServerRow }>('POST', `${serverPath(await serverNamed(client, named))}/${state}`)
      if (flags.json === true) printJson(reply)
      else printLine(`${plain(reply.server.slug)} is ${reply.server.state}`)
    })
  })
}

function addRemove(servers: Command): void {
  const command = addPersonFlags(
    addClientFlags(servers.command('remove').alias('rm').description('remove a server with its header, definitions and approvals')),
  )
    .argument('<server>', 'slug or id')
    .option('-y, --yes', 'do not ask')
  addExamples(command, [['brigade tools servers remove weather --yes', 'its slug is never used again']])
  command.action((named: string, _flags: PersonFlags, self: Command) => {
    const flags = self.optsWithGlobals<PersonFlags & { readonly yes?: boolean }>()
    return personal(flags, false, async client => {
      const server = await serverNamed(client, named)
      const { confirmed } = await import('../operator/confirmation.ts')
      if (flags.yes !== true && !(await confirmed(`Remove the MCP server ${plain(server.slug)} (${plain(server.url)})?`)))
        throw new CommandError('no server was removed.')
      const removed = await client.json('DELETE', serverPath(server))
      if (flags.json === true) printJson(removed)
      else printLine(`removed ${plain(server.slug)}`)
    })
  })
}
