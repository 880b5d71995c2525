import { type Db, type Statement, statement } from '../../src/platform/db/db.ts'

const tables = statement<[], { name: string }>(
  'test.tables',
  `select c.relname as "name" from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind in ('r', 'p') order by 1`,
)
const dumps = new Map<string, Statement<[], { line: string }>>()

/** Tables that a process writes to all the time, independent of requests. */
const heartbeats: ReadonlySet<string> = new Set(['beats', 'processes'])

/** Returns every row of every table as text, except heartbeats. It is for tests of what must not be stored. */
export async function dumpTables(db: Db): Promise<string> {
  const lines: string[] = []
  for (const { name } of await db.many(tables)) {
    if (heartbeats.has(name)) continue
    let dump = dumps.get(name)
    if (!dump) {
      dump = statement<[], { line: string }>(`test.dump_${name}`, `select t::text as "line" from "${name}" t`)
      dumps.set(name, dump)
    }
    for (const { line } of await db.many(dump)) lines.push(line)
  }
  return lines.join('\n')
}
