/**
 * Forward-only migrations: SQL files that are each applied once, in the order of their names. Each runs in one transaction together with
 * its record. Decision 0013 gives the reasons.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigError } from '../config.ts'
import type { Log } from '../observe/log.ts'
import { type Db, isUniqueViolation, statement } from './db.ts'

/** The migrations folder of this package. The path is the same from src and from dist. */
export const migrationsFolder: string = fileURLToPath(new URL('../../../migrations/', import.meta.url))

interface Migration {
  readonly name: string
  readonly checksum: string
  /** True when older versions that do not know this migration may use the database. The file then has a line `-- Additive: ...`. */
  readonly isAdditive: boolean
  readonly sql: string
}

interface AppliedRow {
  readonly name: string
  readonly checksum: string
  readonly isAdditive: boolean
}

// All processes of a database use this lock. Nothing else uses advisory locks of class 1.
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
 * Applies the missing migrations and returns their names. Several processes may run it concurrently. Throws ConfigError when an applied
 * file has changed since, or when the database has an unknown migration that is not marked as additive.
 */
export async function migrate(db: Db, folder: string, log: Log): Promise<{ applied: string[] }> {
  const migrations = readMigrations(folder)
  // `if not exists` alone is not safe with several processes, because both may find the table missing.
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
  // Another process may have applied a missing migration in the meantime. Its checksum must be the same.
  await checkApplied(db, migrations)
  return { applied }
}

/** Returns the migrations that the database lacks, without applying them. Throws the same errors as `migrate`. */
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
    // A checkout on Windows may have changed the line ends. This must not change the checksum.
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

/** Returns whether the table of migrations does not exist. That is the case in an empty database. */
function isUndefinedTable(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === '42P01'
}

/** Applies one migration. Returns false when another process has applied it first. */
async function apply(db: Db, migration: Migration): Promise<boolean> {
  // The record is inserted before the script runs. A second process waits for the primary key of the record. It then fails before it runs a statement of
  // the script.
  const record = `insert into schema_migrations (name, checksum, is_additive) values ('${migration.name}', '${migration.checksum}', ${migration.isAdditive})`
  try {
    await db.script(`begin; ${lockSql}; ${record};\n${migration.sql}\n;commit;`)
    return true
  } catch (error) {
    if (isUniqueViolation(error, 'schema_migrations_pkey')) return false
    throw error
  }
}
