/** Columns that hold sealed values: counts the values under each master key, and seals them again under the current key. */

import type { Sealer } from '../security/secrets.ts'
import { type Db, type SqlValue, type Statement, statement } from './db.ts'

/** One column of sealed values, and how its rows are named. */
export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The primary key, in order. */
  readonly keys: readonly { readonly name: string; readonly type: 'int' | 'text' | 'bytea' }[]
  /** The associated data of a value, from the primary key as text (bytea as `\x` and hex). */
  readonly ownerOf: (keys: readonly string[]) => string
}

interface SealedRow {
  readonly keys: string[]
  readonly sealed: string
}

/** What became of the values of one column. */
export interface Resealed {
  readonly table: string
  readonly column: string
  readonly resealed: number
  /** Values that no known master key opens; they stay as they are. */
  readonly unopened: number
}

/** Values that are sealed again in one transaction. */
const batchRows = 100

/** A column with its statements. Declare each once. */
export class SealedValues {
  readonly table: string
  readonly column: string
  readonly #ownerOf: SealedColumn['ownerOf']
  readonly #count: Statement<[], { keyId: string; values: number }>
  readonly #first: Statement<[currentPattern: string, limit: number], SealedRow>
  readonly #next: Statement<readonly SqlValue[], SealedRow>
  readonly #replace: Statement<readonly SqlValue[], never>

  constructor({ table, column, keys, ownerOf }: SealedColumn) {
    this.table = table
    this.column = column
    this.#ownerOf = ownerOf
    const name = `${table}_${column}`
    const order = keys.map(key => key.name).join(', ')
    // The first characters tell the key; long values are not read for them.
    this.#count = statement(
      `sealed.count_${name}`,
      `select split_part(substr(${column}, 1, 40), '.', 2) as "keyId", count(*)::int as "values" from ${table} where ${column} is not null group by 1 order by 1`,
    )
    const list = `select array[${keys.map(key => `${key.name}::text`).join(', ')}] as "keys", ${column} as "sealed" from ${table}
       where ${column} is not null and ${column} not like $1::text`
    const place = keys.map((key, at) => `$${at + 3}::text::${key.type}`).join(', ')
    this.#first = statement(`sealed.list_first_${name}`, `${list} order by ${order} limit $2::int`)
    this.#next = statement(`sealed.list_next_${name}`, `${list} and (${order}) > (${place}) order by ${order} limit $2::int`)
    this.#replace = statement(
      `sealed.replace_${name}`,
      `update ${table} set ${column} = $1::text where ${keys.map((key, at) => `${key.name} = $${at + 3}::text::${key.type}`).join(' and ')} and ${column} = $2::text`,
    )
  }

  /** How many values are sealed under each master key, by its id. */
  async counts(db: Db): Promise<ReadonlyMap<string, number>> {
    return new Map((await db.many(this.#count)).map(row => [row.keyId, row.values]))
  }

  /**
   * Opens one value that is sealed under the key, to check whether the given key is the right one. Returns null when there is no such value, false when
   * it cannot be opened.
   */
  async opens(db: Db, sealer: Sealer): Promise<boolean | null> {
    const [row] = await db.many(this.#first, '', 1)
    if (row === undefined) return null
    return this.#opened(sealer, row) !== null
  }

  /**
   * Seals every value again that is not under the current key. Values that change meanwhile stay as they were written; a value that cannot be opened is
   * left and counted. If it is stopped in the middle, the next run continues there.
   */
  async reseal(db: Db, sealer: Sealer, currentKeyId: string): Promise<Resealed> {
    let resealed = 0
    let unopened = 0
    const pattern = `v1.${currentKeyId}.%`
    let last: readonly string[] | null = null
    for (;;) {
      const rows: SealedRow[] = last === null ? await db.many(this.#first, pattern, batchRows) : await db.many(this.#next, pattern, batchRows, ...last)
      last = rows.at(-1)?.keys ?? null
      if (last === null) return { table: this.table, column: this.column, resealed, unopened }
      await db.tx(async tx => {
        for (const row of rows) {
          const plain = this.#opened(sealer, row)
          if (plain === null) unopened++
          else resealed += await tx.exec(this.#replace, sealer.seal(plain, this.#ownerOf(row.keys)), row.sealed, ...row.keys)
        }
      })
    }
  }

  #opened(sealer: Sealer, { keys, sealed }: SealedRow): string | null {
    try {
      return sealer.open(sealed, this.#ownerOf(keys))
    } catch {
      return null
    }
  }
}
