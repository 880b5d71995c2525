import type { Command } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { addClientFlags, addExamples } from '../client-command.ts'
import { CommandError, exitCodes } from '../command-error.ts'
import { plain, printJson, printLine, printTable, rupees } from '../command-output.ts'
import { amount, budget, count } from '../option-values.ts'
import type { PersonFlags } from './person.ts'
import { addPersonFlags, personal } from './person-command.ts'

/** A key in replies of the gateway. The secret is only in the reply that makes it. */
interface KeyRow {
  readonly id: number
  readonly prefix: string
  readonly name: string
  readonly scope: string
  readonly state: string
  readonly budget_inr: number | null
  readonly spend_month_inr: number
  readonly expires_at: string | null
  readonly last_used_at: string | null
}

interface CreateFlags extends PersonFlags {
  readonly scope?: string
  readonly expiresDays?: number
  readonly budgetInr?: number
  readonly rpm?: number
}

const pageSize = 200

/** Adds the commands `brigade keys …`. */
export function addKeysCommands(program: Command): void {
  const keys = program.command('keys').description('API keys of the organisation: list, create, rotate, delete')
  addList(keys)
  addCreate(keys)
  addRotate(keys)
  addDelete(keys)
}

function addList(keys: Command): void {
  const command = addPersonFlags(
    addClientFlags(keys.command('list').alias('ls').description('the keys that are not revoked, newest first, with spend of this month')),
  )
  addExamples(command, [['brigade keys list', 'never shows a secret']])
  command.action((flags: PersonFlags) =>
    personal(flags, true, async client => {
      const rows: KeyRow[] = []
      for await (const row of everyKey(client)) rows.push(row)
      if (flags.json === true) printJson({ keys: rows })
      else if (rows.length === 0) printLine('There is no key.')
      else printKeys(rows)
    }),
  )
}

function printKeys(rows: readonly KeyRow[]): void {
  const spent = rupees(rows.map(row => row.spend_month_inr))
  const day = (at: string | null): string => (at === null ? '-' : at.slice(0, 10))
  printTable(
    [
      { head: 'ID', align: 'right' },
      { head: 'NAME' },
      { head: 'STARTS' },
      { head: 'SCOPE' },
      { head: 'STATE' },
      { head: 'BUDGET ₹', align: 'right' },
      { head: 'SPENT ₹', align: 'right' },
      { head: 'LAST USE' },
      { head: 'EXPIRES' },
    ],
    rows.map((row, at) => [
      String(row.id),
      row.name,
      row.prefix,
      row.scope,
      row.state,
      row.budget_inr === null ? '-' : (rupees([row.budget_inr])[0] ?? ''),
      spent[at] ?? '',
      day(row.last_used_at),
      day(row.expires_at),
    ]),
  )
}

function addCreate(keys: Command): void {
  const command = addPersonFlags(addClientFlags(keys.command('create').description('make a key of yours; its secret is printed once')))
    .argument('[name]', '1 to 100 characters, unique among the active keys')
    .option('--scope <scope>', 'full, or inference: calls of models only', 'full')
    .option('--expires-days <n>', 'days of life, 1 to 365', count)
    .option('--budget-inr <inr>', 'monthly budget in rupees', budget)
    .option('--rpm <n>', 'requests a minute', count)
  addExamples(command, [
    ['brigade keys create ci --scope inference --expires-days 90', 'for a build'],
    ['brigade keys create ci --json', 'the secret is the field key'],
  ])
  command.action((name: string | undefined, flags: CreateFlags) =>
    personal(flags, false, async client => {
      const json = { name, scope: flags.scope, expires_days: flags.expiresDays, budget_inr: flags.budgetInr, rpm_limit: flags.rpm }
      printSecret(await client.json('POST', '/me/keys', { json }), flags)
    }),
  )
}

function addRotate(keys: Command): void {
  const command = addPersonFlags(
    addClientFlags(keys.command('rotate').description('give a key a new secret, which is printed once; the old one works for a day more')),
  )
    .argument('<key>', 'name or id')
    .option('--overlap-days <n>', 'days that the old secret works; 0: it ends now', amount)
  addExamples(command, [['brigade keys rotate ci --overlap-days 0', 'when a secret was stolen']])
  command.action((named: string, flags: PersonFlags & { readonly overlapDays?: number }) =>
    personal(flags, false, async client => {
      const { id } = await keyNamed(client, named)
      printSecret(await client.json('POST', `/me/keys/${id}/rotate`, { json: { overlap_days: flags.overlapDays } }), flags)
    }),
  )
}

function addDelete(keys: Command): void {
  const command = addPersonFlags(
    addClientFlags(keys.command('delete').alias('rm').description('end a key permanently, with its running calls and agent tokens')),
  )
    .argument('<key>', 'name or id')
    .option('-y, --yes', 'do not ask')
  addExamples(command, [['brigade keys delete ci --yes', 'in scripts']])
  command.action((named: string, flags: PersonFlags & { readonly yes?: boolean }) =>
    personal(flags, false, async client => {
      const { id, name } = await keyNamed(client, named)
      const { confirmed } = await import('../operator/confirmation.ts')
      if (flags.yes !== true && !(await confirmed(`End the key "${plain(name)}" (id ${id}) permanently?`))) throw new CommandError('no key was ended.')
      const { key } = await client.json<{ key: KeyRow }>('DELETE', `/me/keys/${id}`)
      if (flags.json === true) printJson(key)
      else printLine(`ended ${plain(key.name)} (id ${key.id})`)
    }),
  )
}

/** Prints the secret alone on stdout, so that a script can read it, and what it belongs to on stderr. */
function printSecret(made: { readonly id: number; readonly name: string; readonly key: string }, { json }: PersonFlags): void {
  if (json === true) {
    printJson(made)
    return
  }
  process.stderr.write(`The key "${plain(made.name)}" (id ${made.id}). Its secret is shown once:\n`)
  printLine(plain(made.key))
}

async function* everyKey(client: GatewayClient): AsyncGenerator<KeyRow> {
  let cursor: string | undefined
  do {
    const page: { keys: KeyRow[]; next_cursor: string | null } = await client.json('GET', '/me/keys', { query: { limit: pageSize, cursor } })
    yield* page.keys
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

/** Returns the key with that id, or the one with that name. Throws CommandError (4). */
async function keyNamed(client: GatewayClient, named: string): Promise<KeyRow> {
  for await (const row of everyKey(client)) if (/^\d+$/.test(named) ? row.id === Number(named) : row.name === named) return row
  throw new CommandError(`there is no key "${named}". brigade keys list shows them.`, { exitCode: exitCodes.notFound, code: 'not_found' })
}
