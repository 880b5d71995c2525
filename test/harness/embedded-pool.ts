/**
 * Embedded databases that the tests of one process use one after the other. A new thread costs two seconds of processor time, most of it to compile
 * PostgreSQL. Emptying the tables of an idle database costs a hundredth of that. A database whose tables, columns, triggers, functions or constraints a
 * test has changed is closed instead of used again.
 */
import { type Db, statement, type Tx } from '../../src/platform/db/db.ts'
import type { EmbeddedDb } from '../../src/platform/db/embedded/db-embedded.ts'

/** Maximum number of idle databases of a process. A few tests need two databases together. */
const idleMax = 2
/** Tables are truncated when they have more than this number of bytes, because deleting many rows takes longer than making all files again. */
const deletedMaxBytes = 16 * 1024 * 1024
/** Maximum number of bytes of deleted rows that the files of a table may keep. */
const deadMaxBytes = 64 * 1024
const idle: Owned[] = []
/** All databases have the same start, because each begins as a copy of one database. */
let start: Promise<Start> | null = null

interface Owned {
  readonly db: EmbeddedDb
  readonly start: Start
}

/** The content of a migrated database before any test. */
interface Start {
  readonly shape: string
  readonly tables: readonly string[]
  /** Rows that the migrations wrote, by table, as JSON. */
  readonly rows: ReadonlyMap<string, string>
  readonly sequences: readonly { readonly name: string; readonly lastValue: string }[]
}

const shapeOf = statement<[], { shape: string }>(
  'test.pool_shape',
  `select sum(hashtextextended(part, 0))::text as "shape" from (
     select 'class ' || c.oid || c.relname || c.relkind::text as part from pg_class c where c.relnamespace = 'public'::regnamespace
     union all select 'column ' || a.attrelid || a.attname || a.atttypid || a.attnotnull || a.atthasdef from pg_attribute a
       join pg_class c on c.oid = a.attrelid where c.relnamespace = 'public'::regnamespace and a.attnum > 0
     union all select 'trigger ' || t.oid || t.tgname || t.tgenabled::text from pg_trigger t where not t.tgisinternal
     union all select 'function ' || p.oid || p.proname from pg_proc p where p.pronamespace = 'public'::regnamespace
     union all select 'constraint ' || k.oid || k.conname || k.convalidated from pg_constraint k where k.connamespace = 'public'::regnamespace
     union all select 'schema ' || n.nspname from pg_namespace n where n.nspname not like 'pg\\_t%') parts`,
)
const tablesOf = statement<[], { name: string; isPartition: boolean }>(
  'test.pool_tables',
  `select c.relname as "name", c.relispartition as "isPartition" from pg_class c
   where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname`,
)
const sequencesOf = statement<[], { name: string; lastValue: string }>(
  'test.pool_sequences',
  `select sequencename as "name", last_value::text as "lastValue" from pg_sequences where schemaname = 'public' and last_value is not null`,
)
const filledTables = statement<[], { name: string; sizeBytes: number }>(
  'test.pool_filled',
  `select relname as "name", size::float8 as "sizeBytes"
   from (select c.relname, pg_relation_size(c.oid) + case c.reltoastrelid when 0 then 0 else pg_relation_size(c.reltoastrelid) end as size
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r') sizes
   where size > 0`,
)

/** Returns an empty migrated database: an idle one, or a new one from `open`. Its `close` gives it back to the pool. */
export async function borrowEmbedded(open: () => Promise<EmbeddedDb>): Promise<EmbeddedDb> {
  const kept = idle.pop()
  if (kept !== undefined) return lend(kept)
  const db = await open()
  start ??= startOf(db)
  return lend({ db, start: await start })
}

async function startOf(db: Db): Promise<Start> {
  const tables = (await db.many(tablesOf)).map(({ name }) => name)
  const rows = new Map<string, string>()
  for (const table of tables) {
    const { json } = await db.one(statement<[], { json: string | null }>(`test.pool_rows_${table}`, `select json_agg(t)::text as "json" from ${table} t`))
    if (json !== null) rows.set(table, json)
  }
  const { shape } = await db.one(shapeOf)
  return { shape, tables, rows, sequences: await db.many(sequencesOf) }
}

function lend(owned: Owned): EmbeddedDb {
  const { db } = owned
  const stops: (() => Promise<void>)[] = []
  let ending: Promise<void> | null = null
  const open = (): EmbeddedDb => {
    if (ending !== null) throw new Error('the test has closed this database')
    return db
  }
  const end = async (): Promise<void> => {
    for (const stop of stops) await stop().catch(() => {})
    if (idle.length < idleMax && (await isReset(owned).catch(() => false))) idle.push(owned)
    else await db.close()
  }
  return {
    kind: 'embedded',
    many: async (made, ...params) => open().many(made, ...params),
    maybe: async (made, ...params) => open().maybe(made, ...params),
    one: async (made, ...params) => open().one(made, ...params),
    exec: async (made, ...params) => open().exec(made, ...params),
    tx: async <T>(fn: (tx: Tx) => Promise<T>) => open().tx(fn),
    async listen(channel, fn, onReconnect) {
      const stop = await open().listen(channel, fn, onReconnect)
      stops.push(stop)
      return stop
    },
    notify: async (channel, payload) => open().notify(channel, payload),
    script: async sql => open().script(sql),
    dump: async () => open().dump(),
    quietly: async work => open().quietly(work),
    get roundTrips() {
      return db.roundTrips
    },
    close() {
      ending ??= end()
      return ending
    },
  }
}

/** Restores the database to its state before the test. Returns false when the test has changed more than rows. */
async function isReset({ db, start }: Owned): Promise<boolean> {
  const extra = (await db.many(tablesOf)).filter(({ name }) => !start.tables.includes(name))
  if (extra.some(({ isPartition }) => !isPartition)) return false
  if (extra.length > 0) await db.script(extra.map(({ name }) => `drop table "${name}";`).join('\n'))
  if ((await db.one(shapeOf)).shape !== start.shape) return false
  const filled = await db.many(filledTables)
  const isLarge = filled.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > deletedMaxBytes
  const rows = [...start.rows].map(
    ([table, json]) => `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, ${quoted(json)});`,
  )
  const sequences = start.sequences.map(({ name, lastValue }) => `select setval('"${name}"', ${lastValue});`)
  const emptied = isLarge ? `truncate ${start.tables.join(', ')};` : deletion(filled)
  await db.script(`begin; ${emptied} ${restartSequences} ${rows.join('\n')} ${sequences.join('\n')} commit; select pg_advisory_unlock_all();`)
  const swollen = isLarge ? [] : filled.filter(({ sizeBytes }) => sizeBytes > deadMaxBytes)
  if (swollen.length > 0) await shrink(db, swollen)
  return true
}

const restartSequences = `select setval(format('%I', sequencename)::regclass, start_value, false) from pg_sequences where schemaname = 'public' and last_value is not null;`

/**
 * Returns the SQL that empties tables. It deletes rows, because truncating makes all files of a table and its indexes again. Foreign keys are not checked.
 */
function deletion(filled: readonly { readonly name: string }[]): string {
  return `set local session_replication_role = replica; ${filled.map(({ name }) => `delete from "${name}";`).join(' ')} set local session_replication_role = origin;`
}

/** Frees the pages of deleted rows, so that a test does not read through those of earlier tests. Also resets the statistics of the tables. */
async function shrink(db: EmbeddedDb, tables: readonly { readonly name: string }[]): Promise<void> {
  await db.script(`vacuum ${tables.map(({ name }) => `"${name}"`).join(', ')}`)
  const names = tables.map(({ name }) => `'"${name}"'::regclass`).join(', ')
  await db.script(`update pg_class set relpages = 0, reltuples = -1 where oid in (${names})`)
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
