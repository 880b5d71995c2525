import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openFoundation } from '../src/composition/foundation.ts'
import { systemClock } from '../src/platform/clock.ts'
import { loadConfig } from '../src/platform/config.ts'
import { statement } from '../src/platform/db/db.ts'
import { makeLog } from '../src/platform/observe/log.ts'

const folder = mkdtempSync(join(tmpdir(), 'brigade-boot-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const open = () => openFoundation(loadConfig({ DATA_DIR: folder }), systemClock, makeLog('silent'))
const changeChecksum = statement<[checksum: string]>(
  'test.change_checksum',
  'update schema_migrations set checksum = $1::text where name = (select max(name) from schema_migrations)',
)

test('a database that cannot be migrated is closed again, so that the command can exit', async () => {
  const first = await open()
  await first.db.exec(changeChecksum, 'another')
  await first.db.close()
  for (const _ of ['once', 'and once more: the folder is not held']) await expect(open()).rejects.toThrow('was changed after it was applied')
})
