/**
 * A separate process that opens embedded databases. `hold <folder>` opens one and stays. `write <folder> ...` opens all of them and writes pairs of
 * rows to them in turn, without end. A printed line `<folder index> <pair>` means that the pair's transaction was acknowledged.
 */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/platform/clock.ts'
import { statement } from '../../src/platform/db/db.ts'
import { openEmbedded } from '../../src/platform/db/embedded/db-embedded.ts'
import { silentLog } from '../../src/platform/observe/log.ts'

const insertRow = statement<[pair: number, half: string, filler: string]>(
  'test.insert_row',
  'insert into written (pair, half, filler) values ($1::int, $2::text, $3::text)',
)
const lastPair = statement<[], { pair: number }>('test.last_pair', 'select coalesce(max(pair), 0)::int as "pair" from written')

const say = (line: string): void => void writeSync(1, `${line}\n`)

const [mode = '', ...folders] = process.argv.slice(2)
try {
  const databases = await Promise.all(folders.map(folder => openEmbedded(folder, { clock: systemClock, log: silentLog })))
  say('ready')
  if (mode === 'write') {
    for (const db of databases)
      await db.script('create table if not exists written (pair int not null, half text not null, filler text not null, primary key (pair, half))')
    const next = await Promise.all(databases.map(async db => (await db.one(lastPair)).pair + 1))
    for (let turn = 0; ; turn++) {
      const index = turn % databases.length
      const pair = (next[index] ?? 0) + Math.floor(turn / databases.length)
      await databases[index]?.tx(async tx => {
        await tx.exec(insertRow, pair, 'first', 'x'.repeat(500))
        await tx.exec(insertRow, pair, 'second', 'y'.repeat(500))
      })
      say(`${index} ${pair}`)
    }
  }
  // A timer keeps the process alive, because the lock alone does not.
  setInterval(() => {}, 60_000)
} catch (error) {
  say(`${(error as Error).name}: ${(error as Error).message}`)
  process.exitCode = 1
}
