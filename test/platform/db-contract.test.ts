/** What both databases promise. The tests run on the embedded database, and on PostgreSQL with TEST_DATABASE=postgres. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isUniqueViolation, type SqlValue, statement, type Tx } from '../../src/platform/db/db.ts'
import { TransactionOverError } from '../../src/platform/db/db-session.ts'
import { testDatabase } from '../harness/database.ts'
import { until } from '../harness/until.ts'

const database = await testDatabase()
const { db } = database

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    error => error,
  )

const insert = statement<[id: number, name: string]>('test.contract_insert', 'insert into contract_rows (id, name) values ($1::int, $2::text)')
const names = statement<[], { name: string }>('test.contract_names', 'select name from contract_rows order by id')
const rename = statement<[from: number, name: string]>('test.contract_rename', 'update contract_rows set name = $2::text where id >= $1::int')
const some = statement<[count: number], { n: number }>('test.contract_some', 'select n from generate_series(1, $1::int) as n')
const fails = statement<[], { n: number }>('test.contract_fails', 'select 1 / (select 0) as "n"')
const notifyInTx = statement<[channel: string, payload: string]>('test.contract_notify', 'select pg_notify($1::text, $2::text)')

beforeAll(() => db.script('create table contract_rows (id int primary key, name text not null, constraint contract_rows_name_unique unique (name))'))
afterAll(() => database.dispose())

async function namesAfter(clear: boolean): Promise<string[]> {
  const found = (await db.many(names)).map(row => row.name)
  if (clear) await db.script('delete from contract_rows')
  return found
}

describe('values', () => {
  const instant = new Date('2026-11-21T18:29:59.999Z')
  const cases: [type: string, values: SqlValue[]][] = [
    ['int2', [0, -32_768, 32_767]],
    ['int4', [0, -2_147_483_648, 2_147_483_647]],
    ['int8', [0n, 1n, -9_223_372_036_854_775_808n, 9_223_372_036_854_775_807n, 9_007_199_254_740_993n]],
    ['float8', [0, 0.1, -1.5e300, 5e-324, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]],
    ['numeric', ['0.10', '123456789012345678901234567890.123456789', '-1']],
    ['bool', [true, false]],
    ['text', ['', 'plain', `quotes ' " \\ and\nlines\t`, 'हिन्दी 🙂', 'null', '{"a":1}', 'x'.repeat(200_000)]],
    ['varchar', ['short', '']],
    ['uuid', ['0193f2a0-1b2c-7d3e-8f40-123456789abc']],
    ['timestamptz', [instant, new Date(0), new Date('1969-12-31T23:59:59.500Z'), new Date('9999-12-31T23:59:59.999Z')]],
    ['date', ['2026-11-21', '0001-01-01', '9999-12-31']],
    ['bytea', [Buffer.alloc(0), Buffer.from([0, 1, 92, 39, 255]), Buffer.alloc(100_000, 7)]],
    ['int4[]', [[], [1, null, -2_147_483_648]]],
    ['int8[]', [[], [1n, null, 9_223_372_036_854_775_807n, -9_223_372_036_854_775_808n]]],
    ['text[]', [[], ['', 'null', 'NULL', null, 'a,b', '{}', `"q" \\ '`, ' padded ', 'हिन्दी']]],
    ['bool[]', [[], [true, false, null]]],
    ['date[]', [['2026-11-21', null]]],
    ['timestamptz[]', [[instant, null]]],
    ['numeric[]', [['0.10', null]]],
  ]
  test.each(cases)('values of type %s are read as they were written', async (type, values) => {
    const same = statement<[SqlValue], { value: SqlValue }>(`test.contract_same_${type}`, `select $1::${type} as "value"`)
    for (const value of [...values, null]) expect((await db.one(same, value)).value).toEqual(value)
  })

  test.each(['json', 'jsonb'])('values of type %s are passed as text and returned parsed', async type => {
    const same = statement<[string | null], { value: unknown }>(`test.contract_same_${type}`, `select $1::${type} as "value"`)
    for (const value of [{ a: [1, null, 'x'], b: { c: false } }, [1, 2], 'text', 0, null]) {
      expect((await db.one(same, JSON.stringify(value))).value).toEqual(value)
    }
    expect((await db.one(same, null)).value).toBeNull()
  })

  test('a bytea value is separate from its source buffer', async () => {
    const same = statement<[Buffer], { value: Buffer }>('test.contract_bytes', 'select $1::bytea as "value"')
    const sent = Buffer.from('abc')
    const { value } = await db.one(same, sent)
    expect(Buffer.isBuffer(value)).toBe(true)
    sent.fill(0)
    expect(value.toString()).toBe('abc')
  })

  test('the values of count and sum have the types of the table', async () => {
    const sums = statement<[], { count: bigint; sum: bigint; wide: string; mean: string }>(
      'test.contract_sums',
      'select count(*) as "count", sum(n) as "sum", sum(n::bigint) as "wide", avg(n) as "mean" from generate_series(1, 3) as n',
    )
    expect(await db.one(sums)).toEqual({ count: 3n, sum: 6n, wide: '6', mean: expect.stringMatching(/^2\.0*$/) })
  })

  test('date values do not depend on the time zone of the process', async () => {
    const zone = statement<[at: Date], { zone: string; day: string; india: string }>(
      'test.contract_zone',
      `select current_setting('timezone') as "zone", $1::timestamptz::date as "day", ($1::timestamptz at time zone 'Asia/Kolkata')::date as "india"`,
    )
    expect(await db.one(zone, new Date('2026-11-30T18:30:00Z'))).toEqual({ zone: 'UTC', day: '2026-11-30', india: '2026-12-01' })
  })
})

describe('statements', () => {
  test('statements return all rows, one or none, exactly one, or a count', async () => {
    expect(await db.many(some, 3)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }])
    expect(await db.many(some, 0)).toEqual([])
    expect(await db.maybe(some, 0)).toBeNull()
    expect(await db.maybe(some, 1)).toEqual({ n: 1 })
    expect(await db.one(some, 1)).toEqual({ n: 1 })
    await expect(db.maybe(some, 2)).rejects.toThrow('test.contract_some returned 2 rows')
    await expect(db.one(some, 0)).rejects.toThrow('test.contract_some returned 0 rows')
    await expect(db.one(some, 2)).rejects.toThrow('test.contract_some returned 2 rows')
    for (let id = 1; id <= 3; id++) expect(await db.exec(insert, id, `n${id}`)).toBe(1)
    expect(await db.exec(rename, 99, 'nobody')).toBe(0)
    expect(await namesAfter(true)).toEqual(['n1', 'n2', 'n3'])
  })

  test('statements count affected rows even with a with-clause before', async () => {
    const chain = statement<[]>(
      'test.contract_chain',
      `with made as (insert into contract_rows (id, name) select n, 'row ' || n from generate_series(1, 5) as n returning id)
       update contract_rows set name = name where id in (select id from made)`,
    )
    expect(await db.exec(chain)).toBe(0)
    expect(await namesAfter(true)).toHaveLength(5)
  })

  test('a statement runs repeatedly under its name with other values', async () => {
    for (let n = 0; n < 20; n++) expect(await db.many(some, n)).toHaveLength(n)
    const all = await Promise.all(Array.from({ length: 50 }, (_, n) => db.many(some, n)))
    expect(all.map(rows => rows.length)).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  test('a statement runs again after a failure', async () => {
    expect(await errorOf(db.one(fails))).toMatchObject({ code: '22012' })
    expect(await errorOf(db.one(fails))).toMatchObject({ code: '22012' })
    expect(await db.one(some, 1)).toEqual({ n: 1 })
  })

  test('a statement with a mistake in its SQL reports it each time', async () => {
    const wrong = statement<[], never>('test.contract_wrong', 'select nothing_of_that_name from contract_rows')
    expect(await errorOf(db.many(wrong))).toMatchObject({ code: '42703' })
    expect(await errorOf(db.many(wrong))).toMatchObject({ code: '42703' })
    expect(await db.one(some, 1)).toEqual({ n: 1 })
  })

  test('a statement name cannot be declared twice', () => {
    expect(() => statement('test.contract_some', 'select 1')).toThrow('test.contract_some')
  })

  test('a statement that violates a constraint reports the kind and name of the constraint', async () => {
    await db.exec(insert, 1, 'taken')
    const sameName = await errorOf(db.exec(insert, 2, 'taken'))
    expect(isUniqueViolation(sameName)).toBe(true)
    expect(isUniqueViolation(sameName, 'contract_rows_name_unique')).toBe(true)
    expect(isUniqueViolation(sameName, 'contract_rows_pkey')).toBe(false)
    expect(isUniqueViolation(await errorOf(db.exec(insert, 1, 'other')), 'contract_rows_pkey')).toBe(true)
    const nothing = statement<[id: number, name: string | null]>('test.contract_null', 'insert into contract_rows (id, name) values ($1::int, $2::text)')
    const missing = await errorOf(db.exec(nothing, 3, null))
    expect(missing).toMatchObject({ code: '23502' })
    expect(isUniqueViolation(missing)).toBe(false)
    expect(await namesAfter(true)).toEqual(['taken'])
  })
})

describe('transactions', () => {
  test("a transaction commits when its function returns, and returns the function's value", async () => {
    const value = await db.tx(async tx => {
      await tx.exec(insert, 1, 'kept')
      return tx.many(names)
    })
    expect(value).toEqual([{ name: 'kept' }])
    expect(await namesAfter(true)).toEqual(['kept'])
  })

  test('a transaction rolls back everything when its function throws, and throws that error', async () => {
    const mine = new Error('mine')
    const thrown = await errorOf(
      db.tx(async tx => {
        await tx.exec(insert, 1, 'undone')
        throw mine
      }),
    )
    expect(thrown).toBe(mine)
    expect(await namesAfter(false)).toEqual([])
  })

  test('a transaction does not report a commit after a statement failed, even when its function continued', async () => {
    const work = db.tx(async tx => {
      await tx.exec(insert, 1, 'lost')
      await tx.one(fails).catch(() => null)
      return 'fine'
    })
    await expect(work).rejects.toThrow('rolled back')
    expect(await namesAfter(false)).toEqual([])
  })

  test('a transaction refuses statements after its end', async () => {
    let leaked: Tx | null = null
    await db.tx(async tx => {
      leaked = tx
    })
    const late = leaked as Tx | null
    expect(await errorOf(late === null ? Promise.resolve() : late.exec(insert, 1, 'late'))).toBeInstanceOf(TransactionOverError)
    expect(await namesAfter(false)).toEqual([])
  })

  test('a transaction runs concurrent statements one after the other', async () => {
    await db.tx(async tx => {
      await Promise.all([tx.exec(insert, 1, 'a'), tx.exec(insert, 2, 'b'), tx.exec(insert, 3, 'c')])
    })
    expect(await namesAfter(true)).toEqual(['a', 'b', 'c'])
  })

  test('a transaction fails all concurrent statements when one of them fails', async () => {
    const rest: Promise<unknown>[] = []
    const thrown = await errorOf(
      db.tx(async tx => {
        const failing = tx.one(fails)
        rest.push(errorOf(tx.exec(insert, 1, 'a')), errorOf(tx.exec(insert, 2, 'b')))
        await failing
      }),
    )
    expect(thrown).toMatchObject({ code: '22012' })
    expect(await Promise.all(rest)).toSatisfy((errors: unknown[]) => errors.every(error => error instanceof Error))
    expect(await namesAfter(false)).toEqual([])
  })

  test('the changes of a transaction are invisible outside before the commit, and do not block queries outside', async () => {
    let isCommitted = false
    let outside: Promise<{ names: string[]; isCommitted: boolean }> | null = null
    await db.tx(async tx => {
      await tx.exec(insert, 1, 'inside')
      outside = db.many(names).then(rows => ({ names: rows.map(row => row.name), isCommitted }))
      if (db.kind === 'postgres') expect((await outside).names).toEqual([])
      await tx.exec(insert, 2, 'inside too')
      isCommitted = true
    })
    const seen = await (outside as Promise<{ names: string[]; isCommitted: boolean }> | null)
    if (db.kind === 'embedded') expect(seen).toEqual({ names: ['inside', 'inside too'], isCommitted: true })
    expect(await namesAfter(true)).toEqual(['inside', 'inside too'])
  })

  test('the transactions of many concurrent callers all end', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, n) =>
        db.tx(async tx => {
          await tx.exec(insert, n, `n${n}`)
          if (n % 4 === 0) throw new Error('undo')
          return tx.one(some, 1)
        }),
      ),
    )
    expect(results.filter(result => result.status === 'fulfilled')).toHaveLength(30)
    expect(await namesAfter(true)).toHaveLength(30)
  })
})

describe('scripts', () => {
  test('a script runs several statements, even with a transaction of its own', async () => {
    await db.script(`begin; insert into contract_rows (id, name) values (1, 'a'); insert into contract_rows (id, name) values (2, 'b;c'); commit;`)
    expect(await namesAfter(true)).toEqual(['a', 'b;c'])
  })

  test('a script that fails leaves no change, no open transaction and no setting', async () => {
    const script = `begin; set local statement_timeout = 0; insert into contract_rows (id, name) values (1, 'a'); insert into contract_rows (id, name) values (1, 'b'); commit;`
    expect(isUniqueViolation(await errorOf(db.script(script)), 'contract_rows_pkey')).toBe(true)
    await db.exec(insert, 5, 'after')
    expect(await namesAfter(true)).toEqual(['after'])
  })

  test('a script that does not commit leaves no transaction open for the next caller', async () => {
    await db.script(`begin; insert into contract_rows (id, name) values (1, 'forgotten');`)
    await db.exec(insert, 2, 'next')
    await errorOf(db.tx(() => Promise.reject(new Error('undo'))))
    expect(await namesAfter(true)).toEqual(['next'])
  })

  test('a script that changes a setting of its session does not change it for the next caller', async () => {
    const settings = statement<[], { zone: string; style: string; limit: string }>(
      'test.contract_settings',
      `select current_setting('timezone') as "zone", current_setting('datestyle') as "style", current_setting('lock_timeout') as "limit"`,
    )
    const before = await db.one(settings)
    await db.script(`set timezone = 'Asia/Kolkata'; set datestyle = 'German'; set lock_timeout = 77`)
    expect(await db.one(settings)).toEqual(before)
    expect(before.zone).toBe('UTC')
  })
})

describe('notifications', () => {
  test('notifications reach every listener of their channel and no other, in order', async () => {
    const first: string[] = []
    const second: string[] = []
    const others: string[] = []
    const stops = [
      await db.listen('contract_a', payload => first.push(payload)),
      await db.listen('contract_a', payload => second.push(payload)),
      await db.listen('contract_b', payload => others.push(payload)),
    ]
    await db.notify('contract_a', 'one')
    await db.notify('contract_a', '')
    await db.notify('contract_a', `it's "three" हिन्दी`)
    await until(() => first.length === 3 && second.length === 3, 'the notifications')
    expect(first).toEqual(['one', '', `it's "three" हिन्दी`])
    expect(second).toEqual(first)
    expect(others).toEqual([])
    for (const stop of stops) await stop()
  })

  test('notifications of a transaction are sent at its commit, and not after a rollback', async () => {
    const heard: string[] = []
    const stop = await db.listen('contract_tx', payload => heard.push(payload))
    let heardInside: number | null = null
    await db.tx(async tx => {
      await tx.many(notifyInTx, 'contract_tx', 'committed')
      await tx.one(some, 1)
      heardInside = heard.length
    })
    await errorOf(
      db.tx(async tx => {
        await tx.many(notifyInTx, 'contract_tx', 'undone')
        throw new Error('undo')
      }),
    )
    await db.notify('contract_tx', 'last')
    await until(() => heard.includes('last'), 'the last notification')
    expect(heardInside).toBe(0)
    expect(heard).toEqual(['committed', 'last'])
    await stop()
  })

  test('one listener can stop, and the others still receive notifications', async () => {
    const stopped: string[] = []
    const going: string[] = []
    const stop = await db.listen('contract_stop', payload => stopped.push(payload))
    const stopGoing = await db.listen('contract_stop', payload => going.push(payload))
    await stop()
    await stop()
    await db.notify('contract_stop', 'x')
    await until(() => going.length === 1, 'the notification')
    await stopGoing()
    const again: string[] = []
    const stopAgain = await db.listen('contract_stop', payload => again.push(payload))
    await db.notify('contract_stop', 'y')
    await until(() => again.length === 1, 'the notification of the new listener')
    expect([stopped, going, again]).toEqual([[], ['x'], ['y']])
    await stopAgain()
  })

  test('notifications accept payloads of 7,999 bytes and refuse longer ones', async () => {
    const heard: string[] = []
    const stop = await db.listen('contract_long', payload => heard.push(payload))
    await db.notify('contract_long', 'x'.repeat(7999))
    await until(() => heard.length === 1, 'the long notification')
    expect(heard[0]).toHaveLength(7999)
    expect(await errorOf(db.notify('contract_long', 'x'.repeat(8000)))).toMatchObject({ code: '22023' })
    await stop()
  })

  test('a channel needs a name that is safe to write into a command', async () => {
    await expect(db.listen('a"; drop table x; --', () => {})).rejects.toThrow('channel name')
  })
})

describe('round trips', () => {
  const tripsOf = async (work: () => Promise<unknown>): Promise<number> => {
    const before = db.roundTrips
    await errorOf(work())
    return db.roundTrips - before
  }

  test('a statement takes one round trip, and a transaction takes two more', async () => {
    await db.one(some, 1)
    expect(await tripsOf(() => db.one(some, 1))).toBe(1)
    expect(await tripsOf(() => db.many(some, 100))).toBe(1)
    expect(await tripsOf(() => db.one(fails))).toBe(1)
    expect(await tripsOf(() => db.tx(async tx => [await tx.one(some, 1), await tx.one(some, 1)]))).toBe(4)
    expect(await tripsOf(() => db.tx(() => Promise.reject(new Error('undo'))))).toBe(2)
    expect(await tripsOf(() => db.notify('contract_a', 'x'))).toBe(1)
  })
})
