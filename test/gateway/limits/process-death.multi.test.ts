import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { journalFolder, journalsIn } from '../../../src/gateway/limits/journal/journal.ts'
import { readJournal } from '../../../src/gateway/limits/journal/journal-reader.ts'
import { usageEventCodec } from '../../../src/gateway/usage/events/record-bytes.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { until } from '../../harness/app.ts'
import { onPostgres } from '../../harness/database.ts'
import { call, chat, type Fleet, type FleetReply, fleetAnswer, startFleet, tokenUinr, type UsageRow } from '../../harness/fleet.ts'
import type { GatewayProcess } from '../../harness/process.ts'

const states = statement<[], { id: bigint; state: string; leased: bigint }>(
  'test.process_states',
  `select p.id as "id", p.state as "state", coalesce(sum(l.amount), 0)::bigint as "leased" from processes p left join leases l on l.process_id = p.id group by p.id, p.state order by p.id`,
)
const ageBeat = statement<[id: bigint]>('test.age_beat', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)
const inr = (tokens: number): number => (tokens * Number(tokenUinr)) / 1e6
const times = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const adoptionDeadlineMs = 60_000

/** Makes a pseudo-random generator with a seed, so that a failed round can be repeated. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return state / 2 ** 31
  }
}

describe.runIf(onPostgres)('death of a process', () => {
  let fleet: Fleet
  beforeAll(async () => {
    fleet = await startFleet()
  })
  afterAll(() => fleet?.stop())
  beforeEach(() => {
    fleet.upstream.reset()
    fleet.upstream.script(fleetAnswer)
  })

  const stateOf = async (id: bigint) => (await fleet.db.many(states)).find(row => row.id === id)
  /** Starts a process and reads its id from the database. */
  async function startKnown(folder: string): Promise<{ process: GatewayProcess; id: bigint }> {
    const known = new Set((await fleet.db.many(states)).map(row => row.id))
    const process = await fleet.start({}, folder)
    const found = (await fleet.db.many(states)).find(row => !known.has(row.id))
    if (found === undefined) throw new Error('the process has no row')
    return { process, id: found.id }
  }
  /** Makes a call whose label is both in the usage row and in the request to the upstream. */
  const labelled = (process: GatewayProcess, key: string, label: string, tokens: number, body: object = {}): Promise<FleetReply> =>
    chat(process, key, tokens, { ...body, messages: [{ role: 'user', content: label }] }, { 'x-br-agent-id': label })
  const labelsServed = (): string[] =>
    fleet.upstream.requests.map(request => String((request.json?.['messages'] as { content: string }[] | undefined)?.[0]?.content))
  const rowsOf = (rows: readonly UsageRow[], label: string): UsageRow[] => rows.filter(row => row.label === label)

  /** Waits until the dead process is adopted. Then checks that every completed call, and every other call that reached the provider, has one row. */
  async function expectAdopted(victimId: bigint, completed: readonly string[]): Promise<readonly UsageRow[]> {
    await until(async () => (await stateOf(victimId))?.state === 'closed', adoptionDeadlineMs)
    expect((await stateOf(victimId))?.leased).toBe(0n)
    const rows = await fleet.usage()
    for (const label of completed) expect(rowsOf(rows, label), label).toMatchObject([{ outcome: 'ok', estimated: false }])
    for (const label of labelsServed().filter(served => !completed.includes(served))) {
      const [row, ...more] = rowsOf(rows, label)
      expect(more).toEqual([])
      // A reply that was complete but not read to its end when the process died counts as served. Every other call is flagged.
      expect(row?.outcome === 'ok' || (row?.outcome === 'interrupted' && row.estimated), `${label}: ${row?.outcome}`).toBe(true)
    }
    expect(await fleet.violations()).toEqual([])
    return rows
  }

  describe('with its disk present', () => {
    let folder: string
    let survivor: GatewayProcess

    beforeAll(async () => {
      folder = fleet.newFolder()
      // Two surviving processes try to adopt the journal of the third.
      const both = await Promise.all([fleet.start({}, folder), fleet.start({}, folder)])
      survivor = both[0]
    })

    /** Returns the budget of a key, as the surviving process reports it. */
    const budgetOf = async (key: string) => (await call(survivor, key, 'GET', '/v1/me/budgets')).json.budgets[0]

    /** Makes three complete calls, four streams with two chunks each, and four plain calls without a byte. The last eight still run. */
    async function occupy(victim: GatewayProcess, key: string, prefix: string): Promise<Promise<unknown>[]> {
      for (const i of times(3)) expect((await labelled(victim, key, `${prefix}done-${i}`, 50)).status).toBe(200)
      fleet.upstream.script(request =>
        request.json?.['stream'] === true ? { chunks: times(4).map(() => 'x'.repeat(60)), holdAfterChunks: 2 } : { hold: true },
      )
      const running = [
        ...times(4).map(i => labelled(victim, key, `${prefix}stream-${i}`, 500, { stream: true })),
        ...times(4).map(i => labelled(victim, key, `${prefix}plain-${i}`, 500)),
      ].map(reply => reply.catch(() => null))
      await fleet.upstream.arrived(3 + running.length)
      return running
    }

    /** Returns whether the journals of a data folder contain a record of output. */
    /** Reads only the journal files, because their folder also contains the socket of the process. */
    const hasProgress = (dataDir: string): boolean => {
      const journals = journalFolder(dataDir)
      const records = journalsIn(journals).flatMap(id => [...readJournal(journals, id, 0, usageEventCodec)])
      return records.some(({ record }) => record.kind === 'progress')
    }

    async function expectFlagged(rows: readonly UsageRow[], prefix: string): Promise<void> {
      for (const i of times(4)) {
        expect(rowsOf(rows, `${prefix}stream-${i}`)).toMatchObject([{ outcome: 'interrupted', estimated: true }])
        // These calls received no byte, so they cost nothing.
        expect(rowsOf(rows, `${prefix}plain-${i}`)).toMatchObject([{ outcome: 'interrupted', estimated: true, valueUinr: 0n }])
      }
      expect(rows.filter(row => row.label?.startsWith(`${prefix}stream-`)).some(row => row.valueUinr > 0n)).toBe(true)
    }

    test('BUDX-02 after kill -9 with holds and open streams, another process returns all holds and flags each interrupted call once', async () => {
      const { process: victim, id } = await startKnown(folder)
      const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(10_000) })
      const running = await occupy(victim, key, 'a-')
      await until(async () => (await fleet.leasesOf('key', keyId)).some(lease => lease.processId === id && lease.amount >= 3000n * tokenUinr))
      await victim.kill()
      expect((await Promise.all(running)).every(reply => reply === null)).toBe(true)
      const rows = await expectAdopted(
        id,
        times(3).map(i => `a-done-${i}`),
      )
      await expectFlagged(rows, 'a-')
      expect(await fleet.leasesOf('key', keyId)).toEqual([])
      const spent = rows.filter(row => row.label?.startsWith('a-')).reduce((sum, row) => sum + Number(row.valueUinr), 0) / 1e6
      expect(await budgetOf(key)).toMatchObject({ spent_inr: spent, held_inr: 0, in_doubt_inr: 0, remaining_inr: inr(10_000) - spent })
    })

    test('BUDX-02 a process that starts on the folder of a dead one settles its calls before it serves', async () => {
      const alone = fleet.newFolder()
      const { process: victim, id } = await startKnown(alone)
      const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(10_000) })
      const running = await occupy(victim, key, 'b-')
      await until(() => hasProgress(alone))
      await victim.kill()
      await Promise.all(running)
      const heir = await fleet.start({}, alone)
      expect((await stateOf(id))?.state).toBe('closed')
      await expectFlagged(
        await expectAdopted(
          id,
          times(3).map(i => `b-done-${i}`),
        ),
        'b-',
      )
      expect(await fleet.leasesOf('key', keyId)).toEqual([])
      await heir.kill()
    })

    test.for([3, 14, 15, 92, 65])(
      'BUDX-02 kill -9 of a busy process at a random point loses and duplicates nothing (seed %i)',
      { timeout: 90_000 },
      async seed => {
        const random = randomFrom(seed)
        const { process: victim, id } = await startKnown(folder)
        const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(1_000_000) })
        fleet.upstream.script(request => ({ ...fleetAnswer(request), chunkIntervalMs: 3 }))
        const completed: string[] = []
        let isDead = false
        let sent = 0
        const lane = async (): Promise<void> => {
          while (!isDead) {
            const label = `r${seed}-${sent++}`
            const isStream = random() < 0.5
            const reply = await labelled(victim, key, label, 1 + Math.floor(random() * 300), isStream ? { stream: true } : {}).catch(() => null)
            if (reply === null || (isStream && !reply.text.endsWith('data: [DONE]\n\n'))) continue
            expect(reply.status).toBe(200)
            completed.push(label)
          }
        }
        const lanes = times(8).map(lane)
        await fleet.upstream.arrived(20 + Math.floor(random() * 200), 30_000)
        await victim.kill()
        isDead = true
        await Promise.all(lanes)
        expect(completed.length).toBeGreaterThan(0)
        const rows = await expectAdopted(id, completed)
        expect(rows.filter(row => row.label?.startsWith(`r${seed}-`)).every((row, _, all) => all.filter(other => other.label === row.label).length === 1)).toBe(
          true,
        )
        expect(await fleet.leasesOf('key', keyId)).toEqual([])
        expect(await budgetOf(key)).toMatchObject({ held_inr: 0, in_doubt_inr: 0 })
      },
    )
  })

  test('BUDX-02 a process that is suspended for a long time does not count as dead, and its calls end normally', async () => {
    const folder = fleet.newFolder()
    const [survivor, { process: stopped, id }] = [await fleet.start({}, folder), await startKnown(folder)]
    const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(1000) })
    fleet.upstream.script(request => ({ ...fleetAnswer(request), hold: request.raw.includes('stopped') }))
    const running = labelled(stopped, key, 'stopped', 600)
    await fleet.upstream.arrived(1)
    const held = async (): Promise<bigint> =>
      (await fleet.leasesOf('key', keyId)).filter(lease => lease.processId === id).reduce((sum, lease) => sum + lease.amount, 0n)
    stopped.child.kill('SIGSTOP')
    await fleet.db.exec(ageBeat, id)
    expect(await held()).toBeGreaterThanOrEqual(600n * tokenUinr)
    // Makes calls during many rounds of the janitor. None of them gets the amounts that the suspended process holds.
    let spent = 0
    let last: FleetReply | null = null
    for (; spent < 30 && last?.json.error === undefined; spent++) last = await labelled(survivor, key, `beside-${spent}`, 100)
    expect([last?.status, last?.json.in_doubt_inr]).toEqual([429, Number(await held()) / 1e6])
    // A process that dies now is adopted. This shows that the janitor has examined both processes.
    const other = await startKnown(folder)
    await other.process.kill()
    await until(async () => (await stateOf(other.id))?.state === 'closed', adoptionDeadlineMs)
    expect((await stateOf(id))?.state).toBe('live')
    stopped.child.kill('SIGCONT')
    fleet.upstream.release()
    expect((await running).status).toBe(200)
    await until(async () => rowsOf(await fleet.usage(), 'stopped').length === 1)
    expect(rowsOf(await fleet.usage(), 'stopped')).toMatchObject([{ outcome: 'ok', estimated: false, valueUinr: 600n * tokenUinr }])
    expect((await stateOf(id))?.state).toBe('live')
    const total = (await fleet.usage()).filter(row => row.keyId === keyId).reduce((sum, row) => sum + row.valueUinr, 0n)
    expect(total).toBeLessThanOrEqual(1000n * tokenUinr + 100n * tokenUinr)
    expect(await fleet.violations()).toEqual([])
  })

  test('HARD-05 when a process dies while it continues a call after a disconnect, the call is charged once, with the assumed output', async () => {
    const folder = fleet.newFolder()
    const { process: victim, id } = await startKnown(folder)
    const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(50_000) })
    const part = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'abc'.repeat(100) }, finish_reason: null }] })}\n\n`
    const made: number[] = []
    const parts = function* () {
      for (let n = 1; n <= 21; n++) {
        made.push(n)
        yield part
      }
    }
    fleet.upstream.script([{ rawStream: parts(), holdAfterRawParts: 1, holdAfterRaw: true }])
    const leaving = new AbortController()
    const reply = await fetch(`${victim.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-br-agent-id': 'left' },
      body: JSON.stringify({ model: 'thinking-model', stream: true, messages: [{ role: 'user', content: 'left' }] }),
      signal: leaving.signal,
    })
    await reply.body?.getReader().read()
    leaving.abort()
    const [asked] = fleet.upstream.requests
    fleet.upstream.release()
    await until(() => made.length === 21)
    expect(asked?.aborted).toBe(false)
    await victim.kill()
    await asked?.closed
    const heir = await fleet.start({}, folder)
    await until(async () => (await stateOf(id))?.state === 'closed', adoptionDeadlineMs)
    const rows = rowsOf(await fleet.usage(), 'left')
    expect(rows).toMatchObject([{ keyId, outcome: 'interrupted', estimated: true }])
    expect(rows[0]?.completionTokens).toBeGreaterThanOrEqual(100n)
    expect(await fleet.leasesOf('key', keyId)).toEqual([])
    expect(await fleet.violations()).toEqual([])
    await heir.kill()
  })

  test('BUDX-02 leases of a process with a lost disk are in doubt and granted to no call, and when the disk returns all amounts are exact', async () => {
    const home = fleet.newFolder()
    const survivor = await fleet.start()
    const { process: victim, id } = await startKnown(home)
    const { id: keyId, key } = await fleet.newKey({ budgetInr: inr(5000) })
    for (const i of times(3)) expect((await labelled(victim, key, `gone-done-${i}`, 50)).status).toBe(200)
    fleet.upstream.script(request => ({ ...fleetAnswer(request), hold: request.raw.includes('gone-plain') }))
    const running = times(4).map(i => labelled(victim, key, `gone-plain-${i}`, 500).catch(() => null))
    await fleet.upstream.arrived(7)
    await until(async () => (await fleet.usage()).filter(row => row.label?.startsWith('gone-done')).length === 3)
    await victim.kill()
    await Promise.all(running)
    const [left] = await fleet.leasesOf('key', keyId)
    const leasedUinr = left?.amount ?? 0n
    expect([left?.processId, leasedUinr >= 2000n * tokenUinr]).toEqual([id, true])
    // The disk disappears with its journal, so a new process on the empty folder finds nothing to read.
    const away = `${home}-away`
    renameSync(join(home, 'journal'), away)
    mkdirSync(join(home, 'journal'))
    // Silence is measured from the last beat by the database's clock, so the test sets the beat back by an hour.
    await fleet.db.exec(ageBeat, id)
    const budget = async () => (await call(survivor, key, 'GET', '/v1/me/budgets')).json.budgets[0]
    expect(await budget()).toMatchObject({ cap_inr: inr(5000), spent_inr: inr(150), in_doubt_inr: Number(leasedUinr) / 1e6 })

    // The whole free amount can be spent, but nothing of the amount in doubt.
    let last: FleetReply | null = null
    for (let i = 0; i < 60 && last?.json.error === undefined; i++) last = await labelled(survivor, key, `gone-after-${i}`, 100)
    expect(last?.status).toBe(429)
    expect(last?.json).toMatchObject({ error: { code: 'budget_exceeded' }, scope: 'key', in_doubt_inr: Number(leasedUinr) / 1e6 })
    const spentBefore = (await fleet.usage()).filter(row => row.label?.startsWith('gone-')).reduce((sum, row) => sum + row.valueUinr, 0n)
    const capUinr = 5000n * tokenUinr
    expect(spentBefore + leasedUinr).toBeGreaterThanOrEqual(capUinr)
    expect(spentBefore + leasedUinr).toBeLessThan(capUinr + 100n * tokenUinr)
    expect((await stateOf(id))?.leased).toBe(leasedUinr)
    expect(await fleet.violations()).toEqual([])

    renameSync(away, join(home, 'journal'))
    await fleet.start({}, home)
    await expectAdopted(
      id,
      times(3).map(i => `gone-done-${i}`),
    )
    for (const i of times(4)) expect(rowsOf(await fleet.usage(), `gone-plain-${i}`)).toMatchObject([{ outcome: 'interrupted', estimated: true, valueUinr: 0n }])
    expect(await budget()).toMatchObject({ spent_inr: Number(spentBefore) / 1e6, in_doubt_inr: 0 })
    expect((await labelled(survivor, key, 'gone-again', 100)).status).toBe(200)
  })
})
