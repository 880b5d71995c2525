/** Copies every row of every table from one database to another in bounded memory, and proves that each table arrived. */
import { createHash } from 'node:crypto'
import type { Queryable, SqlValue, Tx } from '../../platform/db/db.ts'
import { asked, foreignKeysOf, hasRowsIn, insertInto, type MovedTable, migrationsOf, partitionsOf, sequencesOf, sumsIn, tablesOf } from './move-queries.ts'

/** The error when the move is not possible. The message says what to do. */
export class MoveError extends Error {
  override readonly name = 'MoveError'
}

/** A summary of one table. Equal summaries on both sides prove that the table arrived. */
export interface TableProof {
  readonly table: string
  readonly rows: number
  /** SHA-256 over all rows as text, in the order of the primary key. */
  readonly sha256: string
  /** Sums of money and amounts by column. */
  readonly sums: Readonly<Record<string, string>>
}

/** Maximum size of the text of one batch in bytes. A batch exceeds it only when a single row is longer. */
const batchBytes = 4 * 1024 * 1024
const batchRowsMax = 2000

/**
 * Copies everything into an empty database with the same migrations, inside the two transactions, and checks the result there. Foreign keys are
 * dropped before the copy. They are added and checked at its end. Throws MoveError when the target is not empty or differs, or when a table arrives
 * with other content. The caller must not commit after an error.
 */
export async function moveRows(source: Tx, target: Tx, progress: (line: string) => void): Promise<TableProof[]> {
  const tables = await tablesOf(source)
  await checkAlike(source, target, tables)
  await lock(target, tables)
  await refuseRows(target, tables)
  const foreignKeys = await foreignKeysOf(target)
  for (const [at, { drop }] of foreignKeys.entries()) await target.exec(asked(`drop_${at}`, drop))
  await makePartitions(source, target)
  const proofs: TableProof[] = []
  for (const table of tables) {
    const proof = await moveTable(source, target, table)
    proofs.push(proof)
    if (proof.rows > 0) progress(`${table.name}: ${proof.rows} rows`)
  }
  for (const { name, last, isCalled } of await sequencesOf(source))
    await target.many(asked<unknown, readonly SqlValue[]>(`set_${name}`, `select setval('"${name}"', $1::bigint, $2::boolean)`), last, isCalled)
  progress('checking foreign keys')
  for (const [at, { add }] of foreignKeys.entries()) await target.exec(asked(`add_${at}`, add))
  return proofs
}

async function checkAlike(source: Queryable, target: Queryable, tables: readonly MovedTable[]): Promise<void> {
  const shape = (all: readonly MovedTable[]): string => all.map(({ name, columns }) => `${name} (${columns.join(', ')})`).join('\n')
  if ((await migrationsOf(source)) === (await migrationsOf(target)) && shape(tables) === shape(await tablesOf(target))) return
  throw new MoveError('The target has another schema than this version makes. Give a database that is empty, or was made by this version and never used.')
}

/**
 * Locks all tables of the target, so that nothing else writes during the copy. A gateway that starts too early waits and then finds all
 * rows.
 */
async function lock(target: Tx, tables: readonly MovedTable[]): Promise<void> {
  await target.exec(asked('lock', `lock table ${tables.map(({ name }) => `"${name}"`).join(', ')} in access exclusive mode`))
}

async function refuseRows(target: Queryable, tables: readonly MovedTable[]): Promise<void> {
  const full: string[] = []
  for (const { name } of tables) {
    const { hasRows } = await target.one(hasRowsIn(name))
    if (hasRows) full.push(name)
  }
  if (full.length > 0)
    throw new MoveError(
      `The target is not empty: it has rows in ${full.slice(0, 5).join(', ')}${full.length > 5 ? ` and ${full.length - 5} more tables` : ''}. Perhaps a gateway has run on it, or the data were moved before. Make a new database (createdb) and name that.`,
    )
}

async function makePartitions(source: Queryable, target: Queryable): Promise<void> {
  const there = new Set((await partitionsOf(target)).map(({ name }) => name))
  for (const { name, create } of await partitionsOf(source)) if (!there.has(name)) await target.exec(asked(`partition_${name}`, create))
}

async function moveTable(source: Tx, target: Tx, table: MovedTable): Promise<TableProof> {
  const insert = insertInto(table)
  const left = await proofOf(source, table, 'from', rows => target.exec(insert, rows))
  const arrived = await proofOf(target, table, 'to', async () => {})
  if (left.rows !== arrived.rows || left.sha256 !== arrived.sha256 || JSON.stringify(left.sums) !== JSON.stringify(arrived.sums))
    throw new MoveError(`The table ${table.name} did not arrive as it left: ${JSON.stringify(left)} there, ${JSON.stringify(arrived)} here. Nothing was moved.`)
  return left
}

/** Reads a table once and returns its summary. `each` receives the rows as text. */
async function proofOf(db: Tx, table: MovedTable, side: string, each: (rows: string[]) => Promise<unknown>): Promise<TableProof> {
  const { name, key } = table
  const found = await db.one(sumsIn(side, table))
  const hash = createHash('sha256')
  let rows = 0
  // Text that is ordered by its bytes has the same order in both databases, whatever their collations are.
  const order = key.length === 0 ? 't::text collate "C"' : key.map(column => `t.${column}::text collate "C"`).join(', ')
  const batch = Math.max(1, Math.min(batchRowsMax, Math.floor(batchBytes / Math.max(1, found.rowBytesMax))))
  const cursor = `move_${side}_${name}`
  await db.exec(asked(`open_${cursor}`, `declare "${cursor}" no scroll cursor for select t::text as "line" from "${name}" t order by ${order}`))
  for (;;) {
    const lines = (await db.many(asked<{ line: string }>(`next_${cursor}`, `fetch ${batch} from "${cursor}"`))).map(row => row.line)
    if (lines.length === 0) break
    for (const line of lines) hash.update(`${Buffer.byteLength(line)}\n`).update(line)
    rows += lines.length
    await each(lines)
  }
  await db.exec(asked(`close_${cursor}`, `close "${cursor}"`))
  if (BigInt(rows) !== found.rows) throw new MoveError(`The table ${name} changed while it was read. Stop whatever writes to it and try again.`)
  return { table: name, rows, sha256: hash.digest('hex'), sums: Object.fromEntries(table.sums.map((column, at) => [column, found.sums[at] ?? '0'])) }
}
