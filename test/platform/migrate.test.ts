import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/platform/config.ts'
import { type Db, statement } from '../../src/platform/db/db.ts'
import { migrate, migrationsFolder, pendingMigrations } from '../../src/platform/db/migrate.ts'
import { silentLog } from '../../src/platform/observe/log.ts'
import { onPostgres, type TestDatabase, testDatabase } from '../harness/database.ts'
import { schemaDump } from './schema-dump.ts'

const listSteps = statement<[], { step: string }>('test.list_steps', 'select step from steps order by id')
const recorded = statement<[], { name: string; isAdditive: boolean }>(
  'test.recorded',
  'select name, is_additive as "isAdditive" from schema_migrations order by name',
)

const workspaceNames = statement<[], { name: string }>('test.workspace_names', 'select name from workspaces order by id')

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    error => error,
  )

const first = 'create table steps (id int generated always as identity, step text not null);\n'
const add = (step: string): string => `insert into steps (step) values ('${step}');\n`

describe('migrations', () => {
  const parent = mkdtempSync(join(tmpdir(), 'brigade-migrate-'))
  let database: TestDatabase
  let db: Db
  let folders = 0
  beforeAll(async () => {
    database = await testDatabase()
    db = database.db
  })
  beforeEach(() => db.script('drop schema public cascade; create schema public;'))
  afterAll(async () => {
    rmSync(parent, { recursive: true, force: true })
    await database.dispose()
  })

  function folderOf(files: Readonly<Record<string, string>>): string {
    const folder = mkdtempSync(join(parent, `${++folders}-`))
    for (const [name, sql] of Object.entries(files)) writeFileSync(join(folder, name), sql)
    return folder
  }
  const run = (files: Readonly<Record<string, string>>, on = db): Promise<{ applied: string[] }> => migrate(on, folderOf(files), silentLog)
  const steps = async (): Promise<string[]> => (await db.many(listSteps)).map(row => row.step)

  test('migrations are applied in the order of their names, each once', async () => {
    const files = {
      '0002_b.sql': add('b'),
      '0010_c.sql': add('c'),
      '0001_a.sql': first + add('a'),
      'schema.sql': 'no migration;',
      '0003_b.sql.orig': 'nor this;',
    }
    expect(await run(files)).toEqual({ applied: ['0001_a.sql', '0002_b.sql', '0010_c.sql'] })
    expect(await run(files)).toEqual({ applied: [] })
    expect(await run({ ...files, '0011_d.sql': add('d') })).toEqual({ applied: ['0011_d.sql'] })
    expect(await steps()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('migrations are applied once when several processes begin concurrently', async () => {
    const files = { '0001_a.sql': first + add('a'), '0002_b.sql': add('b'), '0003_c.sql': add('c') }
    const handles = onPostgres ? await Promise.all([database.open(), database.open(), database.open()]) : [db, db, db]
    const results = await Promise.all(handles.map(handle => run(files, handle)))
    expect(results.flatMap(result => result.applied).sort()).toEqual(['0001_a.sql', '0002_b.sql', '0003_c.sql'])
    expect(await steps()).toEqual(['a', 'b', 'c'])
  })

  test('a migration that fails leaves no trace and can be corrected', async () => {
    const files = { '0001_a.sql': first + add('a'), '0002_b.sql': `${add('half')}select 1 / 0;` }
    expect(await errorOf(run(files))).toMatchObject({ code: '22012' })
    expect(await steps()).toEqual(['a'])
    expect(await run({ ...files, '0002_b.sql': add('b') })).toEqual({ applied: ['0002_b.sql'] })
    expect(await steps()).toEqual(['a', 'b'])
  })

  test('a migration that was changed after it was applied is refused', async () => {
    await run({ '0001_a.sql': first })
    const refusal = await errorOf(run({ '0001_a.sql': `${first}-- changed`, '0002_b.sql': add('b') }))
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(refusal).toMatchObject({ message: expect.stringContaining('0001_a.sql') })
    expect(await steps()).toEqual([])
  })

  test('a migration with Windows line ends counts as the same', async () => {
    await run({ '0001_a.sql': first + add('a') })
    expect(await run({ '0001_a.sql': (first + add('a')).replaceAll('\n', '\r\n') })).toEqual({ applied: [] })
  })

  test('migrations of a newer version are refused, unless they are marked as additive', async () => {
    const known = { '0001_a.sql': first }
    const additive = { ...known, '0002_b.sql': `-- Why.\n-- Additive: binaries from before this migration run against it.\n\n${add('b')}` }
    await run(additive)
    expect(await db.many(recorded)).toEqual([
      { name: '0001_a.sql', isAdditive: false },
      { name: '0002_b.sql', isAdditive: true },
    ])
    expect(await run(known)).toEqual({ applied: [] })
    await run({ ...additive, '0003_c.sql': add('c') })
    const refusal = await errorOf(run(known))
    expect(refusal).toBeInstanceOf(ConfigError)
    expect(refusal).toMatchObject({ message: expect.stringContaining('0003_c.sql') })
  })

  test('missing migrations are listed without a change of the database', async () => {
    const files = { '0001_a.sql': first, '0002_b.sql': add('b') }
    expect(await pendingMigrations(db, folderOf(files))).toEqual(['0001_a.sql', '0002_b.sql'])
    await run({ '0001_a.sql': first })
    expect(await pendingMigrations(db, folderOf(files))).toEqual(['0002_b.sql'])
    expect(await steps()).toEqual([])
    expect(await errorOf(pendingMigrations(db, folderOf({})))).toBeInstanceOf(ConfigError)
  })

  test("the product's migrations produce the schema in migrations/schema.sql, also on a second run", async () => {
    const { applied } = await migrate(db, migrationsFolder, silentLog)
    expect(applied.length).toBeGreaterThan(0)
    expect(await migrate(db, migrationsFolder, silentLog)).toEqual({ applied: [] })
    const golden = join(migrationsFolder, 'schema.sql')
    const dump = `-- The schema that the migrations make, for reading: generated, never applied. UPDATE_GOLDEN=1 rewrites it.\n\n${await schemaDump(db)}`
    if (process.env['UPDATE_GOLDEN'] === '1' && !onPostgres) writeFileSync(golden, dump)
    expect(dump).toBe(existsSync(golden) ? readFileSync(golden, 'utf8').replaceAll('\r\n', '\n') : 'migrations/schema.sql, which UPDATE_GOLDEN=1 writes')
  })

  test("the product's migrations keep the data of an older database, even workspaces whose names differ only in upper and lower case", async () => {
    const names = readdirSync(migrationsFolder).filter(name => /^\d{4}_.*\.sql$/.test(name) && name < '0007')
    await run(Object.fromEntries(names.map(name => [name, readFileSync(join(migrationsFolder, name), 'utf8')])))
    await db.script(`
      insert into orgs (name, kind, created_at) values ('A', 'team', now()), ('B', 'team', now());
      insert into workspaces (org_id, name, created_at, archived_at) values
        (1, 'Team', now(), null), (1, 'team', now(), null), (1, 'TEAM', now(), now()), (2, 'team', now(), null);`)
    await migrate(db, migrationsFolder, silentLog)
    expect((await db.many(workspaceNames)).map(row => row.name)).toEqual(['Team', 'team (2)', 'TEAM', 'team'])
  })
})
