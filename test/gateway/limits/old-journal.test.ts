import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { checkInvariants } from '../../../src/gateway/limits/invariants.ts'
import { journalFolder } from '../../../src/gateway/limits/journal/journal.ts'
import { statement } from '../../../src/platform/db/db.ts'
import { testDatabase } from '../../harness/database.ts'
import { startEngine } from './engine.ts'

const events = statement<[], { id: string; outcome: string; model: string; valueUinr: bigint; costUinr: bigint; completionTokens: bigint }>(
  'test.old_journal_events',
  `select id as "id", outcome as "outcome", model as "model", value_uinr as "valueUinr", cost_uinr as "costUinr", completion_tokens as "completionTokens"
   from usage_events order by id`,
)
const ageBeat = statement<[id: bigint]>('test.old_journal_age', `update beats set beat_at = beat_at - interval '1 hour' where process_id = $1::bigint`)
/** The process that wrote the fixture. */
const deadId = 900n
const idOf = (n: number): string => `01a1f000-0000-7000-8000-00000000000${n}`

it('the journal of a version that wrote every record as JSON is still adopted', async () => {
  const database = await testDatabase()
  const dataDir = mkdtempSync(join(tmpdir(), 'brigade-old-'))
  cpSync(new URL('./fixtures/text-journal.bin', import.meta.url), join(journalFolder(dataDir), `${deadId}.0`))
  const engine = await startEngine(database.db, { dataDir, env: { BEAT_MS: '600000', JANITOR_MS: '600000' } })
  await engine.limits.janitor.runOnce()
  await database.db.exec(ageBeat, deadId)
  await engine.limits.janitor.runOnce()
  // Call 1 settled, call 2 was running, call 3 was closed without a charge.
  const model = 'an "old" model é'
  expect(await database.db.many(events)).toEqual([
    { id: idOf(1), outcome: 'ok', model, valueUinr: 700n, costUinr: 0n, completionTokens: 300n },
    { id: idOf(2), outcome: 'interrupted', model, valueUinr: 60n, costUinr: 60n, completionTokens: 9n },
  ])
  await engine.stop()
  expect(await checkInvariants(database.db)).toEqual([])
  await database.dispose()
})
