import { type Command, Option } from 'commander'
import type { MemoryWritten } from '../../agents/toolkit/memory-client/memory-client-shapes.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { CommandError } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { confirmed } from '../operator/confirmation.ts'
import { count } from '../option-values.ts'
import { withMemory } from './memory-access.ts'
import { contentOf, textOf } from './memory-content.ts'

interface WriteFlags extends ClientFlags {
  readonly text?: string
  readonly ifMatch?: string
  readonly createOnly?: boolean
}

/** Adds the commands `memory put`, `append`, `restore`, `rm`, `promote`. */
export function addMemoryWriteCommands(memory: Command): void {
  addPut(memory)
  addAppend(memory)
  addRestore(memory)
  addRemove(memory)
  addPromote(memory)
}

function addConditions(command: Command): Command {
  return command
    .option('--if-match <etag>', 'only if the object is still this: an etag, or sha256:<hex of the content>')
    .addOption(new Option('--create-only', 'only when nothing is there').conflicts('ifMatch'))
}

const textOption = ['--text <text>', 'what to write, in place of a file or stdin'] as const

function printWritten(written: MemoryWritten, { json }: ClientFlags): void {
  if (json === true) printJson(written)
  else printLine(`wrote ${plain(written.key)}, ${written.size} bytes, etag ${written.etag}`)
}

function addPut(memory: Command): void {
  const command = addConditions(addClientFlags(memory.command('put').description('write an object, from a file or stdin')))
    .argument('<key>', 'such as agents/reviewer/notes.md')
    .argument('[file]', '- or nothing: stdin')
    .option(...textOption)
  addExamples(command, [
    ['brigade memory put agents/reviewer/notes.md notes.md', 'a file'],
    ['date | brigade memory put agents/last-run.txt', 'what another program prints'],
    ['brigade memory put agents/notes.md n.md --if-match \'"9a0364…"\'', 'only if nobody changed it (exit code 6)'],
    ['brigade memory put agents/lock.txt --text me --create-only', 'only if it is not there yet'],
  ])
  command.action((key: string, file: string | undefined, flags: WriteFlags) =>
    withMemory(flags, async client => {
      const { ifMatch, createOnly } = flags
      printWritten(await client.write(key, await contentOf(file, flags.text), { ifMatch, createOnly }), flags)
    }),
  )
}

function addAppend(memory: Command): void {
  const command = addClientFlags(memory.command('append').description('add an entry to a folder, as a new object: concurrent writers lose nothing'))
    .argument('<folder>', 'such as workspaces/3/journal')
    .argument('[file]', '- or nothing: stdin')
    .option(...textOption)
  addExamples(command, [['brigade memory append workspaces/3/journal --text "Deployed 4.2."', 'a line in the journal']])
  command.action((folder: string, file: string | undefined, flags: WriteFlags) =>
    withMemory(flags, async client => printWritten(await client.append(folder, textOf(await contentOf(file, flags.text))), flags)),
  )
}

function addRestore(memory: Command): void {
  const command = addConditions(addClientFlags(memory.command('restore').description('write an earlier version again, as a new one')))
    .argument('<key>')
    .argument('<version>', 'of brigade memory history')
  command.action((key: string, version: string, flags: WriteFlags) =>
    withMemory(flags, async client => printWritten(await client.restore(key, version, { ifMatch: flags.ifMatch, createOnly: flags.createOnly }), flags)),
  )
}

function addRemove(memory: Command): void {
  const command = addClientFlags(memory.command('rm').alias('delete').description('delete an object; its history stays'))
    .argument('<key>')
    .option('--if-match <etag>', 'only if the object is still this')
    .option('--erase-history', 'with all earlier versions, permanently')
    .option('-y, --yes', 'do not ask')
  addExamples(command, [
    ['brigade memory rm agents/reviewer/notes.md', 'brigade memory restore brings it back'],
    ['brigade memory rm agents/secret.txt --erase-history --yes', 'nothing brings it back'],
  ])
  command.action((key: string, flags: WriteFlags & { readonly eraseHistory?: boolean; readonly yes?: boolean }) =>
    withMemory(flags, async client => {
      const { eraseHistory, ifMatch } = flags
      if (eraseHistory === true && flags.yes !== true && !(await confirmed(`Delete "${plain(key)}" and all its versions permanently?`)))
        throw new CommandError('nothing was deleted.')
      await client.remove(key, { ifMatch, eraseHistory })
      if (flags.json === true) printJson({ ok: true })
      else printLine(`deleted ${plain(key)}`)
    }),
  )
}

function addPromote(memory: Command): void {
  const command = addConditions(
    addClientFlags(memory.command('promote').description('write a record of the organisation or a workspace; for its owners and admins')),
  )
    .argument('<name>', 'path below records/, such as policies/security.md')
    .argument('[file]', '- or nothing: stdin')
    .option(...textOption)
    .option('--workspace <id>', 'a record of that workspace', count)
    .option('--source <key...>', 'keys that it was made from')
  addExamples(command, [['brigade memory promote decisions/routing.md routing.md --source agents/reviewer/notes.md', 'org/records/decisions/routing.md']])
  command.action((name: string, file: string | undefined, flags: WriteFlags & { readonly workspace?: number; readonly source?: string[] }) =>
    withMemory(flags, async client => {
      const { workspace: workspaceId, source: sourceKeys, ifMatch, createOnly } = flags
      const written = await client.promote(name, textOf(await contentOf(file, flags.text)), { workspaceId, sourceKeys, ifMatch, createOnly })
      if (flags.json === true) printJson(written)
      else printLine(`wrote ${plain(written.key)}, etag ${written.etag}`)
    }),
  )
}
