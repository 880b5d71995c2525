/** Works on columns of sealed values: counts the values under each master key, and seals them again with the current key. */

import type { Sealer } from '../security/secrets.ts'
import { type Db, type SqlValue, type Statement, statement } from './db.ts'

/** A column of sealed values, and the primary key of its rows. */
export interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The columns of the primary key, in order. */
  readonly keys: readonly { readonly name: string; readonly type: 'int' | 'text' | 'bytea' | 'uuid' }[]
  /** Returns the associated data of a value. The argument is the primary key of its row as text, with bytea as `\x` and hex. */
  readonly ownerOf: (keys: readonly string[]) => string
}

interface SealedRow {
  readonly keys: string[]
  readonly sealed: string
}

/** The result of sealing one column again. */
export interface Resealed {
  readonly table: string
  readonly column: string
  readonly resealed: number
  /** Values that no known master key can open. They stay unchanged. */
  readonly unopened: number
}

/** Number of values that are sealed again in one transaction. */
const batchRows = 100

/** A column with its statements. Declare each column only once. */
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
    // The first characters contain the key id, so the rest of long values is not read.
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

  /** Returns how many values are sealed with each master key, by key id. */
  async counts(db: Db): Promise<ReadonlyMap<string, number>> {
    return new Map((await db.many(this.#count)).map(row => [row.keyId, row.values]))
  }

  /** Opens one value to check whether the sealer has the right key. Returns null when there is no value, and false when the value cannot be opened. */
  async opens(db: Db, sealer: Sealer): Promise<boolean | null> {
    const [row] = await db.many(this.#first, '', 1)
    if (row === undefined) return null
    return this.#opened(sealer, row) !== null
  }

  /**
   * Seals every value again that is not sealed with the current key. A value that changes in the meantime keeps its new content. A value that cannot be
   * opened stays unchanged and is counted. After an interruption, the next run continues with the remaining values.
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
