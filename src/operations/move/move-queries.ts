/** Reads the structure of the two databases of a move: tables, columns, foreign keys, partitions and sequences. */
import type { Queryable, SqlValue, Statement } from '../../platform/db/db.ts'

/** Makes a statement whose text depends on the schema. Statements are prepared by name, so the same name must always have the same text. */
export function asked<R, P extends readonly SqlValue[] = []>(name: string, text: string): Statement<P, R> {
  return { name: `move.${name}`, text }
}

/** A table that both databases must have in the same form. */
export interface MovedTable {
  readonly name: string
  /** Columns with their types, in order. */
  readonly columns: readonly string[]
  /** Columns that an insert writes: all columns that are not computed. */
  readonly written: readonly string[]
  /** Columns of the primary key, in order. */
  readonly key: readonly string[]
  /** Columns with money and other amounts. The move also compares their sums. */
  readonly sums: readonly string[]
}

const tablesSql = `
  select c.relname as "name",
    array(select format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)) from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as "columns",
    array(select quote_ident(a.attname) from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum) as "written",
    array(select quote_ident(a.attname) from pg_index i, unnest(i.indkey) with ordinality as k (attnum, place)
          join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
          where i.indrelid = c.oid and i.indisprimary order by k.place) as "key",
    array(select quote_ident(a.attname) from pg_attribute a
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.atttypid in ('int8'::regtype, 'numeric'::regtype)
            and a.attname ~ '(_uinr|_paise|_bytes|_tokens|^spent|^leased|^amount|^cap|^requests)$' order by a.attnum) as "sums"
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'schema_migrations'
  order by c.relname`

/** Returns every table that contains rows. A partitioned table is returned once. The table of migrations is left out. */
export function tablesOf(db: Queryable): Promise<MovedTable[]> {
  return db.many(asked<MovedTable>('tables', tablesSql))
}

/** Returns the migrations of a database as one text for comparison. */
export async function migrationsOf(db: Queryable): Promise<string> {
  const rows = await db.many(asked<{ line: string }>('migrations', `select name || ' ' || checksum as "line" from schema_migrations order by name`))
  return rows.map(row => row.line).join('\n')
}

/** The statements that drop a foreign key and that add it again. */
export interface ForeignKey {
  readonly drop: string
  readonly add: string
}

const foreignKeysSql = `
  select format('alter table %s drop constraint %I', k.conrelid::regclass, k.conname) as "drop",
    format('alter table %s add constraint %I %s', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid)) as "add"
  from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = current_schema() and k.contype = 'f' and k.conparentid = 0 order by 1`

export function foreignKeysOf(db: Queryable): Promise<ForeignKey[]> {
  return db.many(asked<ForeignKey>('foreign_keys', foreignKeysSql))
}

const partitionsSql = `
  select c.relname as "name",
    format('create table %I partition of %I %s', c.relname, p.relname, pg_get_expr(c.relpartbound, c.oid)) as "create"
  from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent join pg_namespace n on n.oid = p.relnamespace
  where n.nspname = current_schema() and c.relispartition and c.relkind in ('r', 'p') order by c.relname`

/** Returns the partitions, each with the statement that makes it. */
export function partitionsOf(db: Queryable): Promise<{ name: string; create: string }[]> {
  return db.many(asked<{ name: string; create: string }>('partitions', partitionsSql))
}

/** Returns the sequences of identity columns with their present values, ordered by name. */
export async function sequencesOf(db: Queryable): Promise<{ name: string; last: string; isCalled: boolean }[]> {
  const names = await db.many(
    asked<{ name: string }>(
      'sequences',
      `select c.relname as "name" from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = current_schema() and c.relkind = 'S' order by 1`,
    ),
  )
  const found: { name: string; last: string; isCalled: boolean }[] = []
  for (const { name } of names) {
    const { last, isCalled } = await db.one(
      asked<{ last: string; isCalled: boolean }>(`sequence_${name}`, `select last_value::text as "last", is_called as "isCalled" from "${name}"`),
    )
    found.push({ name, last, isCalled })
  }
  return found
}

/** Returns a statement that says whether a table has any row. */
export function hasRowsIn(table: string): Statement<[], { hasRows: boolean }> {
  return asked(`any_${table}`, `select exists (select 1 from "${table}") as "hasRows"`)
}

/** Returns a statement that inserts rows. Each row is given as the text of its row type. */
export function insertInto({ name, written }: MovedTable): Statement<[rows: string[]], never> {
  return asked(
    `insert_${name}`,
    `insert into "${name}" (${written.join(', ')}) overriding system value
     select ${written.map(column => `r.${column}`).join(', ')} from unnest($1::text[]::"${name}"[]) as r`,
  )
}

/** Returns a statement for the number of rows, the sums in the order of `sums`, and the size of the longest row as text. */
export function sumsIn(side: string, { name, sums }: MovedTable): Statement<[], { rows: bigint; sums: string[]; rowBytesMax: number }> {
  const added = sums.map(column => `coalesce(sum(${column}), 0)::text`)
  return asked(
    `sums_${side}_${name}`,
    `select count(*) as "rows", array[${added.join(', ')}]::text[] as "sums", coalesce(max(octet_length(t::text)), 0)::int as "rowBytesMax" from "${name}" t`,
  )
}

/** Returns whether a gateway has run on the database. */
export const isUsedStatement = asked<{ isUsed: boolean }>(
  'is_used',
  'select exists (select 1 from orgs) or exists (select 1 from processes) or exists (select 1 from signing_keys) as "isUsed"',
)

/** Returns the processes that were not closed. */
export const openProcesses = asked<{ id: bigint; journal: string }>(
  'open_processes',
  `select id as "id", journal as "journal" from processes where state <> 'closed' order by id`,
)

/** Returns the organisations whose memory is in a folder. */
export const folderOrgIds = asked<{ orgId: number }>('folder_orgs', `select org_id as "orgId" from memory_stores where store = 'folder' order by org_id`)

/** Changes the store of an organisation to a bucket. */
export const placeStore = asked<never, readonly SqlValue[]>(
  'place_store',
  `update memory_stores set store = 's3', endpoint = $2::text, bucket = $3::text, region = $4::text, sealed_credentials = $5::text,
           access_key_masked = $6::text, cas_put = $7::boolean, cas_delete = $8::boolean, clock_skew_ms = $9::bigint, capabilities = $10::text::jsonb,
           probed_at = clock_timestamp(), updated_at = clock_timestamp(), reconcile_due_at = clock_timestamp(), reconcile_generation = null
         where org_id = $1::int`,
)

/** Sets the etags of the new store on objects whose old etag the index knew. */
export const placeObjects = asked<never, readonly SqlValue[]>(
  'place_objects',
  `update memory_objects o set etag = m.after from unnest($2::text[], $3::text[], $4::text[]) as m (key, before, after)
         where o.org_id = $1::int and o.key = m.key and o.etag = m.before`,
)
