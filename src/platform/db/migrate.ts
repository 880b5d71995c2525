/**
 * Forward-only migrations: plain SQL files, each applied once, in the order of their names, in one transaction with its record.
 * Decision 0013 says why.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../config.ts'
import type { Log } from '../observe/log.ts'
import { type Db, isUniqueViolation, statement } from './db.ts'

/** The migrations of this package, found from src and from dist alike. */
export const migrationsFolder: string = fileURLToPath(new URL('../../../migrations/', import.meta.url))

interface Migration {
  readonly name: string
  readonly checksum: string
  /** Binaries that do not know this migration may run against the database: its header has a line `-- Additive: ...`. */
  readonly isAdditive: boolean
  readonly sql: string
}

interface AppliedRow {
  readonly name: string
  readonly checksum: string
  readonly isAdditive: boolean
}

// One number for all processes of one database; nothing else takes advisory locks of two int4 keys in class 1.
const lockSql = 'select pg_advisory_xact_lock(1, 1)'
const createTableSql = `create table if not exists schema_migrations (
  name text primary key,
  checksum text not null,
  is_additive boolean not null,
  applied_at timestamptz not null default now()
)`
const appliedMigrations = statement<[], AppliedRow>(
  'migrate.list_applied',
  'select name, checksum, is_additive as "isAdditive" from schema_migrations order by name',
)
const fileName = /^\d{4}_[a-z0-9_]+\.sql$/

/**
 * Brings the database to the newest schema, and returns the names of the migrations that were applied now. Any number of processes may do it
 * concurrently. Throws ConfigError when an applied file was changed since, or when the database has a migration that this binary does not know and that
 * is not marked as harmless for old binaries.
 */
export async function migrate(db: Db, folder: string, log: Log): Promise<{ applied: string[] }> {
  const migrations = readMigrations(folder)
  // `if not exists` alone is not safe among several processes: both may find the table missing.
  await db.script(`begin; ${lockSql}; ${createTableSql}; commit;`)
  const known = await checkApplied(db, migrations)
  const applied: string[] = []
  for (const migration of migrations) {
    if (known.has(migration.name)) continue
    if (await apply(db, migration)) {
      applied.push(migration.name)
      log.info('migration_applied', { path: migration.name })
    }
  }
  // Another process may have applied what this one found missing: what it applied has to be the same.
  await checkApplied(db, migrations)
  return { applied }
}

/** Which migrations of the folder the database lacks, without changing it. Same refusals as `migrate`. */
export async function pendingMigrations(db: Db, folder: string): Promise<string[]> {
  const migrations = readMigrations(folder)
  const known = await checkApplied(db, migrations).catch((error: unknown) => {
    if (isUndefinedTable(error)) return new Set<string>()
    throw error
  })
  return migrations.map(migration => migration.name).filter(name => !known.has(name))
}

function readMigrations(folder: string): Migration[] {
  const names = readdirSync(folder)
    .filter(name => fileName.test(name))
    .sort()
  return names.map(name => {
    // A checkout on Windows may have changed the line ends; the checksum must not notice.
    const sql = readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n')
    return { name, sql, checksum: createHash('sha256').update(sql).digest('hex'), isAdditive: /^-- Additive: /m.test(sql) }
  })
}

async function checkApplied(db: Db, migrations: readonly Migration[]): Promise<ReadonlySet<string>> {
  const rows = await db.many(appliedMigrations)
  const ours = new Map(migrations.map(migration => [migration.name, migration]))
  for (const row of rows) {
    const migration = ours.get(row.name)
    if (migration === undefined) {
      if (row.isAdditive) continue
      throw new ConfigError(`The database has the migration ${row.name}, which this version does not know: it was made by a newer version. Start that version.`)
    }
    if (migration.checksum !== row.checksum)
      throw new ConfigError(`The migration ${row.name} was changed after it was applied. Restore the file; a change of the schema is a new migration.`)
  }
  return new Set(rows.map(row => row.name))
}

/** An empty database has no list of migrations either. */
function isUndefinedTable(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === '42P01'
}

/** False when another process was faster. */
async function apply(db: Db, migration: Migration): Promise<boolean> {
  // The record comes first: a second process waits at its key, then fails on it before any statement of the script ran.
  const record = `insert into schema_migrations (name, checksum, is_additive) values ('${migration.name}', '${migration.checksum}', ${migration.isAdditive})`
  try {
    await db.script(`begin; ${lockSql}; ${record};\n${migration.sql}\n;commit;`)
    return true
  } catch (error) {
    if (isUniqueViolation(error, 'schema_migrations_pkey')) return false
    throw error
  }
}
