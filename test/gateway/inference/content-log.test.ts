import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ContentCall } from '../../../src/gateway/inference/content-log/content-capture.ts'
import { ContentLog } from '../../../src/gateway/inference/content-log/content-log.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { ControlLog } from '../../../src/platform/db/db-control-log.ts'
import { reply } from '../../../src/platform/endpoint.ts'
import { pulled, type StreamSink } from '../../../src/platform/loop/stream-sink.ts'
import { makeLog } from '../../../src/platform/observe/log.ts'
import { makeSealer } from '../../../src/platform/security/secrets.ts'
import { until } from '../../harness/app.ts'
import { onPostgres, testDatabase } from '../../harness/database.ts'

const addOrg = statement<[days: number], { id: number }>(
  'test.add_keeping_org',
  `insert into orgs (name, kind, created_at, retention_days) values ('Keeper', 'team', now(), $1::int) returning id`,
)
const countOf = statement<[orgId: number], { count: number }>('test.count_content_of', `select count(*)::int as count from content_log where org_id = $1::int`)

const setWindow = statement<[orgId: number, days: number]>('test.set_keeping_window', `update orgs set retention_days = $2::int where id = $1::int`)
const waiting = statement<[], { count: number }>(
  'test.waiting_for_lock',
  `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
)

describe('the content log', () => {
  let database: Awaited<ReturnType<typeof testDatabase>>
  let content: ContentLog
  let lines: string[]
  let orgId: number
  /** The founders of organisations, by organisation. */
  const founders = new Map<number, string>()
  let number = 0

  beforeEach(async () => {
    database = await testDatabase()
    const { db } = database
    lines = []
    const log = makeLog('info', { write: line => lines.push(line) })
    const controlLog = new ControlLog({ db, clock: systemClock, log, pollMs: 1000 })
    content = new ContentLog({
      db,
      clock: systemClock,
      log,
      sealer: makeSealer(randomBytes(32)),
      controlLog,
      founderOf: org => founders.get(org) ?? String(org),
    })
    orgId = (await db.one(addOrg, 7)).id
  })
  afterEach(() => database.dispose())

  const call = (): ContentCall => {
    const bytes = Buffer.from('{"model":"m"}')
    return {
      orgId,
      requestId: `request-${number++}`,
      keyId: 1,
      model: 'm',
      native: { format: 'openai', body: {}, bytes, stream: false, headers: {}, query: '' },
      requestBytes: bytes.length,
    }
  }
  const dropped = () => lines.filter(line => line.includes('content_log_dropped')).reduce((sum, line) => sum + JSON.parse(line).count, 0)

  test('the content log drops calls above its memory limit, logs their number, and continues', async () => {
    const large = Buffer.alloc(1024 * 1024, 'x')
    for (let at = 0; at < 40; at++) content.keep(call(), reply.bytes(large, {}))
    await content.flush()
    const { count } = await database.db.one(countOf, orgId)
    expect(count).toBeGreaterThan(25)
    expect(dropped()).toBe(40 - count)
    expect(dropped()).toBeGreaterThan(0)
    content.keep(call(), reply.json({ ok: true }))
    await content.flush()
    expect((await database.db.one(countOf, orgId)).count).toBe(count + 1)
  })

  test('the content log gives each founder a share, and logs the organisations whose calls it dropped', async () => {
    const addOther = async () => (await database.db.one(addOrg, 7)).id
    const [first, second, victim] = [await addOther(), await addOther(), await addOther()]
    for (const org of [first, second]) founders.set(org, 'one person')
    const large = Buffer.alloc(1024 * 1024, 'x')
    const held = async (sink: StreamSink): Promise<void> => {
      sink.push(large)
      await new Promise(() => undefined)
    }
    for (let at = 0; at < 80; at++) {
      const made = content.keep({ ...call(), orgId: at % 2 === 0 ? first : second }, reply.stream(held, {}))
      if (made.body.kind === 'stream') await pulled(made.body.pump).next()
    }
    const ofVictim = { ...call(), orgId: victim }
    for (let at = 0; at < 10; at++) content.keep({ ...ofVictim, requestId: `victim-${at}` }, reply.bytes(large, {}))
    await content.flush()
    expect((await database.db.one(countOf, victim)).count).toBe(10)
    expect(dropped()).toBeGreaterThan(40)
    const named = lines.filter(line => line.includes('content_log_dropped')).map(line => JSON.parse(line).orgId)
    expect(new Set(named)).toEqual(new Set([first, second]))
  })

  test('when the database is unreachable, only content is lost', async () => {
    await database.db.close()
    content.keep(call(), reply.bytes(Buffer.from('{}'), {}))
    content.keepFailure(call(), new Error('broken'))
    await content.flush()
    expect(dropped()).toBe(2)
    expect(lines.join('')).not.toContain('"model":"m"')
  })

  test('frees the memory of a stream that is not read to its end', async () => {
    const forever = async (sink: StreamSink): Promise<void> => {
      while (!sink.isGone) if (!sink.push(Buffer.alloc(100_000, 'y'))) await sink.room()
    }
    const made = content.keep(call(), reply.stream(forever, {}))
    if (made.body.kind !== 'stream') throw new Error('no stream')
    let chunks = 0
    for await (const _chunk of pulled(made.body.pump)) if (++chunks === 30) break
    await content.flush()
    expect((await database.db.one(countOf, orgId)).count).toBe(1)
  })

  test('a call is written once, and the same request id of another organisation is a separate entry', async () => {
    const first = call()
    const other = { ...first, orgId: (await database.db.one(addOrg, 7)).id }
    for (const each of [first, first, other]) content.keep(each, reply.json({ org: each.orgId }))
    expect((await content.read(first.orgId, first.requestId))?.reply).toBe(`{"org":${first.orgId}}`)
    expect((await content.read(other.orgId, first.requestId))?.reply).toBe(`{"org":${other.orgId}}`)
    await content.shrink(other.orgId, 0)
    expect(await content.read(other.orgId, first.requestId)).toBeNull()
    expect(await content.read(first.orgId, first.requestId)).not.toBeNull()
  })

  test.runIf(onPostgres)('a write waits for a running change of the retention window and obeys it', async () => {
    const second = await database.open()
    let commit = (): void => {}
    const mayCommit = new Promise<void>(resolve => {
      commit = resolve
    })
    let isHeld = false
    const closing = second.tx(async tx => {
      await tx.exec(setWindow, orgId, 0)
      isHeld = true
      await mayCommit
    })
    await until(() => isHeld)
    content.keep(call(), reply.json({}))
    const flushed = content.flush()
    await until(async () => (await database.db.one(waiting)).count > 0)
    commit()
    await Promise.all([closing, flushed])
    expect((await database.db.one(countOf, orgId)).count).toBe(0)
    expect(dropped()).toBe(0)
  })

  test('a stop writes the waiting content', async () => {
    content.keep(call(), reply.json({}))
    await content.stop()
    expect((await database.db.one(countOf, orgId)).count).toBe(1)
  })
})
