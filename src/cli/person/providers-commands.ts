import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { addClientFlags, addExamples } from '../client-command.ts'
import { CommandError, exitCodes, fileReason, wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine, printTable } from '../command-output.ts'
import type { PersonFlags } from './person.ts'
import { addPersonFlags, personal } from './person-command.ts'

interface ProviderRow {
  readonly id: string
  readonly name: string
  readonly configured: boolean
  readonly residency: string
  readonly byok: boolean
  readonly missing?: readonly string[]
  readonly untried?: true
}

interface SavedKey {
  readonly provider: string
  readonly mask: string
  readonly always_use: boolean
  readonly verified: boolean
  readonly models: number
}

interface AddFlags extends PersonFlags {
  readonly from?: string
  readonly label?: string
  readonly first?: boolean
  readonly value?: readonly string[]
  readonly model?: readonly string[]
}

/** Adds the commands `brigade providers …`. */
export function addProvidersCommands(program: Command): void {
  const providers = program.command('providers').description('providers of models and your own keys at them: list, add, test, remove')
  addList(providers)
  addAdd(providers)
  addTest(providers)
  addRemove(providers)
}

function addList(providers: Command): void {
  const command = addPersonFlags(addClientFlags(providers.command('list').alias('ls').description('which providers serve calls, and the saved keys'))).option(
    '--all',
    'also providers that serve nothing now',
  )
  addExamples(command, [['brigade providers list --all', 'every provider that Brigade knows']])
  command.action((flags: PersonFlags & { readonly all?: boolean }) =>
    personal(flags, true, async client => {
      const [{ data }, saved] = await Promise.all([
        client.json<{ data: ProviderRow[] }>('GET', '/v1/providers'),
        client.json<{ keys: SavedKey[] }>('GET', '/me/byok').catch(withoutOwnKeys),
      ])
      const rows = data.map(row => ({ ...row, own_key: saved.keys.find(key => key.provider === row.id) ?? null }))
      const shown = rows.filter(row => flags.all === true || row.configured || row.own_key !== null)
      if (flags.json === true) printJson({ providers: shown })
      else if (shown.length === 0) printLine('No provider serves calls. Add a key of your own: brigade providers add <provider>. --all lists the providers.')
      else printProviders(shown)
    }),
  )
}

/** An installation may not take own keys at all. It still has providers. */
function withoutOwnKeys(thrown: unknown): { keys: SavedKey[] } {
  if (thrown instanceof Error && 'code' in thrown && thrown.code === 'byok_disabled') return { keys: [] }
  throw thrown
}

function printProviders(rows: readonly (ProviderRow & { readonly own_key: SavedKey | null })[]): void {
  printTable(
    [{ head: 'ID' }, { head: 'NAME' }, { head: 'STATE' }, { head: 'RESIDENCY' }, { head: 'OWN KEY' }],
    rows.map(({ id, name, configured, residency, byok, missing, untried, own_key: key }) => [
      id,
      name,
      `${configured ? 'serves on the key of the operator' : key === null ? notConfigured(missing) : 'serves on your own key'}${untried === true ? ', never tried' : ''}`,
      residency,
      key === null
        ? byok
          ? '-'
          : 'not taken'
        : `${key.mask}, ${key.verified ? 'verified' : 'not verified'}${key.always_use ? ', used first' : ''}, ${key.models} models`,
    ]),
  )
}

/** Says which settings of the operator are missing. Only rows of clouds say so. */
const notConfigured = (missing: readonly string[] | undefined): string =>
  `not configured${missing === undefined ? '' : `: set ${missing.map(plain).join(', ')}`}`

function addAdd(providers: Command): void {
  const command = addPersonFlags(addClientFlags(providers.command('add').description('save a key of your own at a provider, after Brigade has tried it there')))
    .argument('<provider>', 'id, as brigade providers list --all shows it')
    .option('--from <file>', 'file with the key, - for stdin; left out on a terminal: asks for it and does not show it')
    .option('--label <text>', 'for people')
    .option('--first', "use it ahead of the operator's key")
    .option('--value <name=text>', 'a value of your account that fills the address of a cloud, such as resource=acme; give it again for others', repeated)
    .option('--model <id>', 'a deployment or model that the provider does not list; give it again for others', repeated)
  addExamples(command, [
    ['brigade providers add groq', 'asks for the key'],
    ['printenv GROQ_API_KEY | brigade providers add groq --from -', 'from a pipe'],
    [
      'brigade providers add vertex-openai --from account.json --value project=acme --value location=eu --model google/gemini-2.5-flash',
      'a file with a JSON object holds credentials',
    ],
  ])
  command.action((provider: string, flags: AddFlags) =>
    personal(flags, false, async client => {
      const key = await keyOf(provider, flags)
      const ofCloud = { ...(flags.value === undefined ? {} : { values: valuesOf(flags.value) }), ...(flags.model === undefined ? {} : { models: flags.model }) }
      const json = { ...secretOf(key), label: flags.label, always_use: flags.first, ...ofCloud }
      const saved = await client.json<{ mask: string; verified: boolean; models_discovered: number }>('PUT', pathOf(provider), { json })
      if (flags.json === true) printJson(saved)
      else
        printLine(
          `saved the key ${plain(saved.mask)} at ${plain(provider)}: ${saved.verified ? 'the provider accepts it' : 'the provider has no call that shows a wrong key'}, ${saved.models_discovered} models`,
        )
    }),
  )
}

const repeated = (text: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), text]

function valuesOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map(text => {
      const at = text.indexOf('=')
      if (at < 1) throw wrongUsage(`--value takes name=text, such as resource=acme, not ${text}.`)
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}

/** A JSON object is credentials of a cloud. Every other text is a key. */
function secretOf(text: string): { readonly key: string } | { readonly credentials: unknown } {
  if (!text.startsWith('{')) return { key: text }
  try {
    return { credentials: JSON.parse(text) }
  } catch (cause) {
    throw wrongUsage('the credentials are not valid JSON.', cause)
  }
}

async function keyOf(provider: string, { from }: AddFlags): Promise<string> {
  const { askSecret } = await import('../terminal/questions.ts')
  const text = from === undefined ? await askSecret(`Key at ${plain(provider)}:`, 'add --from <file>') : textOf(from)
  if (text === '') throw wrongUsage('the key is empty.')
  return text
}

function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (cause) {
    throw wrongUsage(`--from: ${path} cannot be read: ${fileReason(cause)}.`, cause)
  }
}

function addTest(providers: Command): void {
  const command = addPersonFlags(addClientFlags(providers.command('test').description('try the saved key at its provider'))).argument('<provider>', 'id')
  addExamples(command, [['brigade providers test groq', 'exit code 1: rejected or unreachable']])
  command.action((provider: string, flags: PersonFlags) =>
    personal(flags, false, async client => {
      const { status } = await client.json<{ status: 'ok' | 'rejected' | 'unreachable' }>('POST', `${pathOf(provider)}/test`)
      if (flags.json === true) printJson({ provider, status })
      else printLine(`${plain(provider)}: ${said[status]}`)
      if (status !== 'ok') process.exitCode = exitCodes.failed
    }),
  )
}

const said = { ok: 'the provider accepts the key', rejected: 'the provider rejects the key', unreachable: 'the provider did not answer' } as const

function addRemove(providers: Command): void {
  const command = addPersonFlags(addClientFlags(providers.command('remove').alias('rm').description('remove the saved key; calls stop using it immediately')))
    .argument('<provider>', 'id')
    .option('-y, --yes', 'do not ask')
  addExamples(command, [['brigade providers remove groq --yes', 'in scripts']])
  command.action((provider: string, flags: PersonFlags & { readonly yes?: boolean }) =>
    personal(flags, false, async client => {
      const { confirmed } = await import('../operator/confirmation.ts')
      if (flags.yes !== true && !(await confirmed(`Remove your own key at ${plain(provider)}?`))) throw new CommandError('no key was removed.')
      const removed = await client.json('DELETE', pathOf(provider))
      if (flags.json === true) printJson(removed)
      else printLine(`removed the key at ${plain(provider)}`)
    }),
  )
}

function pathOf(provider: string): string {
  return `/me/byok/${encodeURIComponent(provider)}`
}
