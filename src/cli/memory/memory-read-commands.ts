import type { Command } from 'commander'
import type { MemoryClient } from '../../agents/toolkit/memory-client/memory-client.ts'
import type { MemoryListed, MemoryMatch, MemoryVersion } from '../../agents/toolkit/memory-client/memory-client-shapes.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { plain, printFields, printJson, printLine, printTable } from '../command-output.ts'
import { count } from '../option-values.ts'
import { authorText, withMemory } from './memory-access.ts'
import { addMemoryGetCommand } from './memory-get-command.ts'

interface ListFlags extends ClientFlags {
  readonly keys?: boolean
  readonly level?: boolean
  readonly since?: string
  readonly author?: string
  readonly limit?: number
}

interface SearchFlags extends ClientFlags {
  readonly regex?: boolean
  readonly case?: boolean
  readonly prefix?: string
  readonly limit?: number
}

/** Maximum number of keys in one request. A request asks for fewer when the person asks for fewer. */
const pageMax = 1000
const searchPageMax = 200

/** Adds the commands `memory get`, `ls`, `search`, `history`, `paths`. */
export function addMemoryReadCommands(memory: Command): void {
  addMemoryGetCommand(memory)
  addList(memory)
  addSearch(memory)
  addHistory(memory)
  const paths = addClientFlags(memory.command('paths').description('the places that this credential reads and writes, beside agents/ of everybody'))
  paths.action((flags: ClientFlags) =>
    withMemory(flags, async client => {
      const reply = await client.paths()
      if (flags.json === true) printJson(reply)
      else
        printFields(Object.fromEntries(Object.entries({ ...reply.scopes, agents: 'agents/' }).map(([name, path]) => [name, [path].flat().join(' ') || 'none'])))
    }),
  )
}

function addList(memory: Command): void {
  const command = addClientFlags(memory.command('ls').alias('list').description('list readable keys: size, time, author, key'))
    .argument('[prefix]', 'only keys with this beginning', '')
    .option('-k, --keys', 'print keys only')
    .option('--level', 'one level: folders end with /')
    .option('--since <time>', 'only what was written since that day or time, such as 2026-01-31')
    .option('--author <who>', 'only what user:<id> or agent:<id> wrote last')
    .option('--limit <n>', 'the most keys to list', count)
  addExamples(command, [
    ['brigade memory ls agents/', 'all below agents/'],
    ['brigade memory ls --level', 'what is there at the top'],
    ['brigade memory ls --keys | head', 'keys for other programs; stops when nobody reads on'],
  ])
  command.action((prefix: string, flags: ListFlags) =>
    withMemory(flags, async client => {
      const keys: MemoryListed[] = []
      const prefixes = new Set<string>()
      for await (const found of listed(client, prefix, flags)) {
        if (typeof found === 'string') {
          if (prefixes.has(found)) continue
          prefixes.add(found)
        }
        if (flags.json !== true) printLine(flags.keys === true ? plain(nameOf(found)) : lineOf(found))
        else if (typeof found !== 'string') keys.push(found)
      }
      if (flags.json === true) printJson({ keys, ...(flags.level === true ? { prefixes: [...prefixes] } : {}) })
    }),
  )
}

/** Yields keys and, with --level, folders, in the order of their pages. The next page is fetched when the present one is used up. */
async function* listed(
  client: MemoryClient,
  prefix: string,
  { level, since, author, limit = Number.POSITIVE_INFINITY }: ListFlags,
): AsyncGenerator<MemoryListed | string> {
  let cursor: string | undefined
  let left = limit
  do {
    const page = await client.listPage(prefix, {
      limit: Math.min(left, pageMax),
      cursor,
      ...(level === true ? { delimiter: '/' } : {}),
      modifiedSince: since,
      author,
    })
    const found = [...(page.prefixes ?? []), ...page.keys].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)).slice(0, left)
    left -= found.length
    yield* found
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined && left > 0)
}

function nameOf(found: MemoryListed | string): string {
  return typeof found === 'string' ? found : found.key
}

/** Returns a line with columns of fixed width. The longest value of a column is known only at the end, so it cannot set the width. */
function lineOf(found: MemoryListed | string): string {
  const [size, modified, author] = typeof found === 'string' ? ['-', '-', '-'] : [String(found.size), found.modified.slice(0, 19), authorText(found.author)]
  return `${size.padStart(9)}  ${modified.padEnd(19)}  ${plain(author).padEnd(10)}  ${plain(nameOf(found))}`
}

function addSearch(memory: Command): void {
  const command = addClientFlags(memory.command('search').description('lines of readable objects that have a text'))
    .argument('<text>', 'what to look for')
    .option('--regex', 'the text is a regular expression of RE2 syntax')
    .option('--case', 'upper and lower case differ')
    .option('--prefix <prefix>', 'only keys with this beginning')
    .option('--limit <n>', 'the most lines to print', count)
  addExamples(command, [
    ['brigade memory search deploy', 'everywhere'],
    ["brigade memory search 'deploy(ed|ing) v\\d' --regex --prefix workspaces/3/", 'an expression, in one place'],
  ])
  command.action((text: string, flags: SearchFlags) =>
    withMemory(flags, async client => {
      const { regex, case: caseSensitive, prefix, limit = Number.POSITIVE_INFINITY } = flags
      const matches: MemoryMatch[] = []
      let found = 0
      for await (const match of client.search(text, { regex, caseSensitive, prefix, limit: Math.min(limit, searchPageMax) })) {
        if (flags.json === true) matches.push(match)
        else printLine(`${plain(match.key)}:${match.line}: ${plain(match.snippet)}`)
        found++
        if (found >= limit) break
      }
      if (flags.json === true) printJson({ matches })
      else if (found === 0) process.stderr.write('Nothing was found.\n')
    }),
  )
}

function addHistory(memory: Command): void {
  const command = addClientFlags(memory.command('history').description('the versions of a key, newest first'))
    .argument('<key>')
    .option('--limit <n>', 'the most versions to list', count)
  addExamples(command, [
    ['brigade memory history agents/notes.md', 'who changed it when'],
    ['brigade memory get agents/notes.md --version <version>', 'the content of that version'],
    ['brigade memory restore agents/notes.md <version>', 'write it again'],
  ])
  command.action((key: string, flags: ClientFlags & { readonly limit?: number }) =>
    withMemory(flags, async client => {
      const versions: MemoryVersion[] = []
      for await (const version of client.history(key)) {
        versions.push(version)
        if (versions.length === flags.limit) break
      }
      if (flags.json === true) printJson({ key, versions })
      else printVersions(versions)
    }),
  )
}

function printVersions(versions: readonly MemoryVersion[]): void {
  printTable(
    [{ head: 'VERSION' }, { head: 'HOW' }, { head: 'SIZE', align: 'right' }, { head: 'MODIFIED' }, { head: 'AUTHOR' }, { head: '' }],
    versions.map(({ version, how, size, modified, author, current }) => [
      version ?? '-',
      how,
      how === 'delete' ? '-' : String(size),
      modified.slice(0, 19),
      authorText(author),
      current ? 'current' : '',
    ]),
  )
}
