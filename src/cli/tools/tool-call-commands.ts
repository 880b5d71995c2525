import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { GatewayTool, ToolCallResult, ToolContent } from '../../agents/toolkit/tools-client.ts'
import { addClientFlags, addExamples, type CalledGateway, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { CommandError, exitCodes, fileReason, wrongUsage } from '../command-error.ts'
import { plain, printFields, printJson, printLine, printTable, rupees } from '../command-output.ts'
import { list } from '../option-values.ts'
import { jsonLines, linesOf } from './definition-text.ts'

interface ListFlags extends ClientFlags {
  readonly server?: string[]
}

interface CallFlags extends ClientFlags {
  readonly from?: string
}

/** Adds the list to `brigade tools` itself, and the commands `show` and `call`. */
export function addToolCallCommands(tools: Command): void {
  addClientFlags(tools).option('--server <slugs>', 'only of these servers, with commas between', list)
  tools.action((flags: ListFlags) => withGateway(flags, gateway => printAll(gateway, flags)))
  addShow(tools)
  addCall(tools)
}

async function clientOf({ client }: CalledGateway) {
  const { toolsClient } = await import('../../agents/toolkit/tools-client.ts')
  return toolsClient(client)
}

async function printAll(gateway: CalledGateway, { server, json }: ListFlags): Promise<void> {
  const found: GatewayTool[] = []
  for await (const tool of (await clientOf(gateway)).list({ servers: server })) found.push(tool)
  if (json === true) printJson({ tools: found })
  else if (found.length === 0)
    printLine('This credential may call no tool. brigade agent update <agent> --allowed-tools <names> allows some; brigade tools servers lists the servers.')
  else {
    const prices = rupees(found.map(tool => tool.price_inr))
    printTable(
      [{ head: 'TOOL' }, { head: 'PRICE ₹', align: 'right' }, { head: 'RESIDENCY' }, { head: 'WHAT ITS SERVER SAYS' }],
      found.map(({ name, residency, definition }, at) => [name, prices[at] ?? '', residency, shortOf(definition.description ?? definition.title ?? '')]),
    )
  }
}

const shortChars = 80

function shortOf(text: string): string {
  const line = linesOf(text)[0] ?? ''
  return line.length > shortChars ? `${line.slice(0, shortChars - 1)}…` : line
}

function addShow(tools: Command): void {
  const command = addClientFlags(tools.command('show').description('one tool that you may call, with the schema of its arguments')).argument(
    '<tool>',
    'name, as brigade tools shows it',
  )
  addExamples(command, [['brigade tools show weather__forecast', 'its approved definition']])
  command.action((name: string, _flags: ClientFlags, self: Command) => {
    const flags = self.optsWithGlobals<ClientFlags>()
    return withGateway(flags, async gateway => {
      const tool = await (await clientOf(gateway)).get(name)
      if (tool === null) throw noTool(name)
      if (flags.json === true) return printJson(tool)
      printFields({ tool: tool.name, server: tool.server, residency: tool.residency, price: `₹${rupees([tool.price_inr])[0]} a call`, hash: tool.hash })
      printLine('\nIts definition, as its server wrote it:')
      for (const line of jsonLines(tool.definition)) printLine(`  ${line}`)
    })
  })
}

function noTool(name: string): CommandError {
  return new CommandError(`this credential may call no tool "${plain(name)}". brigade tools lists those that it may call.`, {
    exitCode: exitCodes.notFound,
    code: 'tool_not_found',
  })
}

function addCall(tools: Command): void {
  const command = addClientFlags(tools.command('call').description('call a tool with JSON arguments, and print its result'))
    .argument('<tool>', 'name, as brigade tools shows it')
    .argument('[json]', 'its arguments as a JSON object; left out: none')
    .option('--from <file>', 'file with the arguments, - for stdin; other users of a computer can read the words of a command, and not a file')
  addExamples(command, [
    ['brigade tools call weather__forecast \'{"city":"Pune"}\'', 'prints the text of the result'],
    ['brigade tools call crm__add-note --from note.json --json', 'the whole result, for programs'],
  ])
  command.action((name: string, text: string | undefined, _flags: CallFlags, self: Command) => {
    const flags = self.optsWithGlobals<CallFlags>()
    const args = argumentsOf(text, flags.from)
    return withGateway(flags, async gateway => {
      const result = await (await clientOf(gateway)).call(name, args)
      if (flags.json === true) printJson(result)
      else printResult(result)
      if (result.isError === true) throw new CommandError('the tool reports a failure.', { code: 'tool_failed' })
    })
  })
}

/** Returns the arguments of a call. Throws CommandError (2) when they are no JSON object. */
function argumentsOf(text: string | undefined, from: string | undefined): Record<string, unknown> {
  if (text !== undefined && from !== undefined) throw wrongUsage('say either the arguments or --from.')
  const given = from === undefined ? text : textOf(from)
  if (given === undefined) return {}
  let value: unknown
  try {
    value = JSON.parse(given)
  } catch (cause) {
    throw wrongUsage('the arguments are no JSON. Write an object in quotes, such as \'{"city":"Pune"}\'.', cause)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongUsage('the arguments must be a JSON object, such as \'{"city":"Pune"}\'.')
  return value as Record<string, unknown>
}

function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (cause) {
    throw wrongUsage(`--from: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  }
}

function printResult({ content, structuredContent }: ToolCallResult): void {
  for (const block of content) for (const line of blockLines(block)) printLine(line)
  // A server repeats structured content as text for clients that do not know it.
  if (structuredContent !== undefined && !content.some(({ type }) => type === 'text')) for (const line of jsonLines(structuredContent)) printLine(line)
}

function blockLines({ type, text, data, mimeType, uri, name }: ToolContent): string[] {
  if (type === 'text') return linesOf(text ?? '')
  if (type === 'resource_link') return [plain(`[link ${uri ?? ''} ${name ?? ''}]`)]
  const size = data === undefined ? '' : `, ${Buffer.byteLength(data, 'base64')} bytes; --json prints them`
  return [plain(`[${type} ${mimeType ?? ''}${size}]`)]
}
