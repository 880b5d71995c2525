import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { MemoryObject } from '../../agents/toolkit/memory-client/memory-client-shapes.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { CommandError, exitCodes, fileReason } from '../command-error.ts'
import { plain, printJson } from '../command-output.ts'
import { withMemory } from './memory-access.ts'

interface GetFlags extends ClientFlags {
  readonly version?: string
  readonly output?: string
  readonly verbose?: boolean
}

/** Adds the command `brigade memory get`. */
export function addMemoryGetCommand(memory: Command): void {
  const command = addClientFlags(memory.command('get').description('write the bytes of an object to stdout'))
    .argument('<key>', 'such as agents/reviewer/notes.md')
    .option('--version <version>', 'an earlier version, of brigade memory history')
    .option('-o, --output <file>', 'write to a file')
    .option('-v, --verbose', 'say on stderr who wrote it, when, and its etag')
  addExamples(command, [
    ['brigade memory get agents/reviewer/notes.md', 'to read it'],
    ['brigade memory get agents/model.bin -o model.bin', 'into a file'],
    ['brigade memory get org/records/policy.md -v', 'with author, time and etag'],
  ])
  command.action((key: string, flags: GetFlags) =>
    withMemory(flags, async client => {
      const found = await client.read(key, { version: flags.version })
      if (found === null) throw absent(key, flags.version)
      if (flags.verbose === true) for (const line of headOf(found)) process.stderr.write(`${line}\n`)
      if (flags.output !== undefined) writeToFile(flags.output, found.bytes)
      else if (flags.json !== true) return void process.stdout.write(found.bytes)
      if (flags.json === true) printJson(jsonOf(found, flags.output === undefined))
    }),
  )
}

function absent(key: string, version: string | undefined): CommandError {
  const message =
    version === undefined
      ? `there is nothing at "${key}". brigade memory ls shows what you may read.`
      : `"${key}" has no version "${version}". brigade memory history "${key}" lists them.`
  return new CommandError(message, { exitCode: exitCodes.notFound, code: 'not_found', status: 404 })
}

function headOf({ etag, bytes, provenance: { user, agent, agentName, client, at, sha256, promotedBy, sources, restoredFrom } }: MemoryObject): string[] {
  const named = agent === null ? null : agentName === null ? agent : `${agentName} (${agent})`
  const fields: [string, string | null][] = [
    ['etag', etag],
    ['size', String(bytes.length)],
    ['user', user],
    ['agent', named],
    ['client', client],
    ['written', at],
    ['sha256', sha256],
    ['promoted-by', promotedBy],
    ['sources', sources.length === 0 ? null : sources.join(' ')],
    ['restored-from', restoredFrom],
  ]
  return fields.flatMap(([name, value]) => (value === null ? [] : [`${name}: ${plain(value)}`]))
}

function writeToFile(path: string, bytes: Uint8Array): void {
  try {
    writeFileSync(path, bytes)
  } catch (cause) {
    const isFolderMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT'
    throw new CommandError(`${path} cannot be written: ${isFolderMissing ? 'there is no such folder' : fileReason(cause)}.`, { cause })
  }
}

/** Returns the object as JSON. Text is in `content`, and bytes that are not UTF-8 are in `content_base64`. */
function jsonOf({ key, bytes, text, etag, provenance }: MemoryObject, withContent: boolean): object {
  const { agentName, promotedBy, restoredFrom, ...rest } = provenance
  const isText = Buffer.from(text).equals(bytes)
  const content = isText ? { content: text } : { content_base64: Buffer.from(bytes).toString('base64') }
  return {
    key,
    size: bytes.length,
    etag,
    provenance: { ...rest, agent_name: agentName, promoted_by: promotedBy, restored_from: restoredFrom },
    ...(withContent ? content : {}),
  }
}
